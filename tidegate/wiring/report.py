"""What the report's function works with."""

from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.notices import SnsNotices
from tidegate.adapters.reports import S3Reports
from tidegate.service.reporting import Reporter
from tidegate.wire.catalogue import types_of
from tidegate.wiring.function import Deployed


def reporter(deployed: Deployed) -> Reporter:
    settings, clients, file = deployed.settings, deployed.clients, deployed.file
    assert file.report, "the stack has this function where the file asks for reports"
    cluster, clock = file.cluster.name, SystemClock()
    is_told = file.notifications is not None and bool(settings.topic)
    notices = SnsNotices(clients("dynamodb"), clients("sns"), settings.table, settings.topic)
    return Reporter(
        cluster=cluster,
        every=file.report.every,
        reports=S3Reports(clients("s3"), settings.bucket, cluster, file.region),
        ledger=DynamoLedger(clients("dynamodb"), settings.table, clock),
        clock=clock,
        types=types_of(file.cluster),
        notices=notices if is_told else None,
    )
