"""Codes that programs read, each with what it means for people: `tidegate explain` tells it."""

from enum import StrEnum
from typing import Self


class Coded(StrEnum):
    """`meaning`: what it says, as a sentence without its end. `remedy`: what to do, "": nothing."""

    meaning: str
    remedy: str

    def __new__(cls, code: str, meaning: str = "", remedy: str = "") -> Self:
        made = str.__new__(cls, code)
        made._value_ = code
        made.meaning, made.remedy = meaning, remedy
        return made
