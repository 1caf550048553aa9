"""The demo's cluster file, with an evening that is near."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

CLUSTER_FILE = Path(__file__).with_name("cluster.yaml")
TIME_ZONE = "Asia/Tokyo"

# Far enough for the story's day and for three times reconcile (every five minutes) in the night;
# near enough for instances that EC2 dates by the real clock to look young (the cluster file's
# `boot_bound_s`) to functions whose clock has jumped over it.
DAY = timedelta(minutes=5)
NIGHT = timedelta(minutes=18)


def write_cluster_file(folder: Path, now_s: float) -> Path:
    """A copy with schedules: stop in five minutes, start 18 minutes later."""
    stop = datetime.fromtimestamp(now_s, UTC).astimezone(ZoneInfo(TIME_ZONE)) + DAY
    start = stop + NIGHT
    schedules = f"""
schedules:
  time_zone: {TIME_ZONE}
  stop: "{stop.minute} {stop.hour} * * *"
  start: "{start.minute} {start.hour} * * *"
"""
    written = folder / CLUSTER_FILE.name
    written.write_text(CLUSTER_FILE.read_text() + schedules)
    return written
