"""Lambda's resource types, mended: moto's own drop half of a function's settings."""

from typing import Any

from moto.awslambda.models import LambdaFunction

from local.shims.resource import Resource, register

_create: Any = LambdaFunction.create_from_cloudformation_json
_update: Any = LambdaFunction.update_from_cloudformation_json
_configuration: Any = LambdaFunction.get_configuration


def _created(name: str, json_: dict[str, Any], account: str, region: str, **more: Any) -> Any:
    function = _create(name, json_, account, region, **more)
    _apply(function, json_["Properties"])
    return function


def _updated(original_resource: Any, **given: Any) -> Any:
    function = _update(original_resource=original_resource, **given)
    _apply(function, given["cloudformation_json"]["Properties"])
    return function


def _apply(function: Any, properties: dict[str, Any]) -> None:
    """What moto neither sets nor unsets, with the defaults of the Lambda API."""
    function.environment_vars = properties.get("Environment", {}).get("Variables", {})
    function.timeout = int(properties.get("Timeout", 3))
    function.memory_size = int(properties.get("MemorySize", 128))
    function.architectures = properties.get("Architectures", ["x86_64"])
    function.tracing_config = properties.get("TracingConfig", {"Mode": "PassThrough"})
    function.reserved_concurrency = properties.get("ReservedConcurrentExecutions")
    function.dead_letter_config = properties.get("DeadLetterConfig")
    function.logging_config = properties.get("LoggingConfig")
    function.tags = {each["Key"]: each["Value"] for each in properties.get("Tags", [])}


def _get_configuration(function: Any, on_create: bool = False) -> dict[str, Any]:
    answer: dict[str, Any] = _configuration(function, on_create)
    for key, name in (
        ("DeadLetterConfig", "dead_letter_config"),
        ("LoggingConfig", "logging_config"),
    ):
        if value := getattr(function, name, None):
            answer[key] = value
    return answer


class Permission(Resource):
    """A statement of a function's resource policy. moto's own has no id and is never removed."""

    type = "AWS::Lambda::Permission"

    def put(self, properties: dict[str, Any]) -> None:
        self.remove()
        self.function = self.place.backend("lambda").get_function(properties["FunctionName"])
        self.function.policy.statements.append(_statement(self.name, self.function, properties))

    def remove(self) -> None:
        """The function may be gone already, and its policy with it."""
        policy = getattr(getattr(self, "function", None), "policy", None)
        if policy:
            policy.statements[:] = [each for each in policy.statements if each["Sid"] != self.name]


def _statement(sid: str, function: Any, properties: dict[str, Any]) -> dict[str, Any]:
    """Source: the Lambda API's AddPermission, and what GetPolicy answers after it."""
    principal: str = properties["Principal"]
    is_service = principal.endswith(".amazonaws.com")
    condition: dict[str, dict[str, str]] = {}
    if "SourceArn" in properties:
        condition["ArnLike"] = {"AWS:SourceArn": properties["SourceArn"]}
    if "SourceAccount" in properties:
        condition["StringEquals"] = {"AWS:SourceAccount": str(properties["SourceAccount"])}
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service" if is_service else "AWS": principal},
        "Action": properties["Action"],
        "Resource": function.function_arn,
        **({"Condition": condition} if condition else {}),
    }


class EventInvokeConfig(Resource):
    type = "AWS::Lambda::EventInvokeConfig"

    def put(self, properties: dict[str, Any]) -> None:
        self.function_name = properties["FunctionName"]
        backend = self.place.backend("lambda")
        backend.get_function(self.function_name).event_invoke_config.clear()
        backend.put_function_event_invoke_config(self.function_name, properties)

    def remove(self) -> None:
        functions = self.place.backend("lambda")
        for function in functions.list_functions():
            if function.function_name == self.function_name:
                function.event_invoke_config.clear()


def install() -> None:
    function: Any = LambdaFunction
    function.create_from_cloudformation_json = staticmethod(_created)
    function.update_from_cloudformation_json = staticmethod(_updated)
    function.get_configuration = _get_configuration
    register((Permission, EventInvokeConfig))
