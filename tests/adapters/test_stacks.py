"""The templates that CloudFormation has, against the local cloud."""

import json

from local.cloud import LocalCloud
from tidegate.adapters.stacks import deployed_template

TEMPLATE = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}}}


def test_template_is_as_it_was_deployed_and_empty_without_a_stack():
    with LocalCloud() as cloud:
        client = cloud.client("cloudformation")
        client.create_stack(StackName="kept", TemplateBody=json.dumps(TEMPLATE))

        assert deployed_template(client, "kept")["Resources"] == TEMPLATE["Resources"]
        assert deployed_template(client, "none") == {}
        client.delete_stack(StackName="kept")
