"""What every notebook reads: only what runs counts as use, so that an open page holds no GPU.

JupyterLab asks for kernels and sessions every ten seconds while its page is in front, and Jupyter
Server takes each question for activity, unless its handler says otherwise.
"""

from jupyter_server.base.handlers import APIHandler

APIHandler._track_activity = False
