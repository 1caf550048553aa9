"""What slurmctld runs at every submission: one script of Lua, of the parts that are asked for."""

from userdata.bundle import read

SUBMIT = "job_submit.lua"
ADVICE = "advice"


def submit_files(*, has_estimate: bool, advice: tuple[str, ...] | None) -> dict[str, str]:
    """The script and the lines that it reads, by name; nothing: nobody asks for it.

    `advice`: the lines of classes that opted in; None: no class ever does.
    """
    parts = [
        *(["submit_advice.lua"] if advice is not None else []),
        # Behind it: the estimate is of what the job then asks.
        *(["submit_estimate.lua"] if has_estimate else []),
    ]
    if not parts:
        return {}
    made = "".join(read(f"head/{part}") for part in (SUBMIT, *parts, "submit_end.lua"))
    lines = {} if advice is None else {ADVICE: "".join(f"{line}\n" for line in advice)}
    return {SUBMIT: made, **lines}
