"""What moto's CloudFormation, queues and rules lack, so that a synthesized stack deploys into it.

Written against moto 5.2.5; `install.install_shims` puts it all into place.
"""
