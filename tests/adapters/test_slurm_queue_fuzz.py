"""Whatever squeue prints: jobs, or an error that says so."""

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.test_slurm_queue import SEPARATOR, printed, read
from tidegate.adapters.slurm_queue import FIELDS
from tidegate.adapters.slurm_text import ParseError


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_comment_or_account_forges_a_row(text):
    spoilt = text.replace("~", "")
    jobs = read(printed({"Comment": spoilt, "Account": spoilt}, {"JobID": "8", "ArrayJobID": "8"}))

    assert [job.job_id for job in jobs] == ["7", "8"]


@given(st.text(max_size=400))
def test_any_text_for_squeue_gives_jobs_or_a_parse_error(text):
    with_separators = text.replace("0", SEPARATOR)
    try:
        read(with_separators)
    except ParseError:
        return


@given(st.fixed_dictionaries({}, optional={name: st.text(max_size=20) for name in FIELDS}))
def test_any_field_gives_a_job_or_a_parse_error(row):
    try:
        jobs = read(printed({name: text.replace("~", "") for name, text in row.items()}))
    except ParseError:
        return
    assert len(jobs) == 1


@given(st.text(alphabet="0123456789:-%,.KMGTN/A=gresu ", max_size=20), st.sampled_from(FIELDS))
def test_any_slurm_like_field_gives_a_job_or_a_parse_error(text, field):
    try:
        jobs = read(printed({field: text}))
    except ParseError:
        return
    assert len(jobs) == 1
