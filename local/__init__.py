"""A cloud and its machines on this computer: for the demo, the sandbox and the tests."""

import atexit
import gc
from functools import cache

import botocore.session

# moto, botocore's models and the CDK are a million objects that stay to the end. Python's cyclic
# collector would go through them again and again while they load, and once more at the end.
gc.set_threshold(100_000, 20, 20)
atexit.register(gc.freeze)

# Each session would read the megabytes that describe AWS's services anew, and moto makes one of its
# own as it is imported.
vars(botocore.session)["create_loader"] = cache(vars(botocore.session)["create_loader"])
