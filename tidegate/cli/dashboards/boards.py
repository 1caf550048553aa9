"""The dashboards, one for each question that people ask."""

from tidegate.cli.dashboards.jobs import COST, WAITING
from tidegate.cli.dashboards.machines import FLEET, GPUS
from tidegate.cli.dashboards.service import HEALTH

BOARDS = (WAITING, COST, GPUS, FLEET, HEALTH)
