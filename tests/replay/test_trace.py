"""Reading histories: both formats, and every kind of broken line by its number."""

import pytest

from tidegate.sim.replay.trace import BadTrace, read_trace

CSV = "job_id,submit_s,duration_s,gpus,nodes,partition\n"
SACCT = "JobID|Submit|Start|End|State|Partition|NNodes|ReqTRES|Timelimit|User|Account|Constraints\n"


def sacct(job_id="7", state="COMPLETED", **changes):
    values = {
        "Submit": "2026-03-02T08:00:00",
        "Start": "2026-03-02T08:10:00",
        "End": "2026-03-02T09:10:00",
        "Partition": "gpu",
        "NNodes": "1",
        "ReqTRES": "billing=4,cpu=4,gres/gpu:a10g=2,gres/gpu=2,mem=16G,node=1",
        "Timelimit": "1-02:00:00",
    } | changes
    middle = "|".join(values[name] for name in ("Submit", "Start", "End"))
    rest = "|".join(values[name] for name in ("Partition", "NNodes", "ReqTRES", "Timelimit"))
    return f"{job_id}|{middle}|{state}|{rest}|anna|lab|large\n"


def test_csv_jobs_come_in_the_order_of_their_submission():
    jobs = read_trace(CSV + "b,60,10,12,2,x\na,5,7.5,1,1,y\n").jobs

    assert [job.job_id for job in jobs] == ["a", "b"]
    assert (jobs[1].gpus, jobs[1].gpus_total, jobs[1].nodes) == (6, 12, 2)
    assert (jobs[0].submit_s, jobs[0].duration_s, jobs[0].time_limit_s) == (5, 7.5, None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,1,2", "line 3: 3 fields instead of 6"),
        ("a,x,2,1,1,p", "line 3: submit_s must be a number, is 'x'"),
        ("a,1,nan,1,1,p", "line 3: duration_s must be 0-100,000,000,000 seconds, is nan"),
        ("a,1,-2,1,1,p", "line 3: duration_s must be 0-100,000,000,000 seconds, is -2"),
        ("a,1,2,1,0,p", "line 3: nodes must be a whole number, 1-9,999,999, is '0'"),
        (",1,2,1,1,p", "line 3: job_id is empty"),
        ("ok,1,2,1,1,p", "line 3: job ok is in line 2 already"),
    ],
)
def test_a_broken_line_is_named_and_skipped_only_when_asked(line, said):
    text = f"{CSV}ok,1,2,1,1,p\n{line}\n"

    with pytest.raises(BadTrace) as caught:
        read_trace(text)
    lenient = read_trace(text, is_lenient=True)

    assert str(caught.value) == said
    assert [str(each) for each in lenient.broken] == [said]
    assert len(lenient.jobs) == 1


@pytest.mark.parametrize("header", [CSV.replace("submit_s", "submit_s,submit_s"), SACCT])
def test_a_column_that_is_there_twice_is_refused(header):
    """Else the last one would count, without a word."""
    twice = header if header.startswith("job_id") else header.replace("Submit|", "Submit|Submit|")

    with pytest.raises(BadTrace, match=r"line 1: names [Ss]ubmit(_s)? twice: keep one"):
        read_trace(twice)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "JobID|Submit\n1|2\n", CSV])
def test_what_is_no_history_is_refused(text):
    with pytest.raises(BadTrace):
        read_trace(text)


def test_sacct_gives_each_job_with_what_a_node_of_it_needs():
    asked = "cpu=64,gres/gpu=16,mem=100G,node=2"
    job = read_trace(SACCT + sacct(NNodes="2", ReqTRES=asked)).jobs[0]

    assert (job.nodes, job.gpus, job.gpus_total, job.cpus) == (2, 8, 16, 32)
    assert (job.memory_mib, job.gpu_type) == (50 * 1024, "")
    assert (job.submit_s, job.duration_s, job.time_limit_s) == (8 * 3600, 3600, 26 * 3600)
    assert (job.user, job.account, job.constraint) == ("anna", "lab", "large")
    assert read_trace(SACCT + sacct()).jobs[0].gpu_type == "a10g"


def test_sacct_gives_neuron_devices_as_what_they_are():
    asked = "cpu=64,gres/neuron:trainium=32,gres/neuron=32,mem=100G,node=2"
    job = read_trace(SACCT + sacct(NNodes="2", ReqTRES=asked)).jobs[0]

    assert (job.gres, job.gpus, job.gpus_total, job.gpu_type) == ("neuron", 16, 32, "trainium")
    assert read_trace(SACCT + sacct()).jobs[0].gres == "gpu"


def test_sacct_lines_that_are_no_work_are_counted_by_what_they_are():
    text = SACCT + "".join(
        (
            sacct("7_1"),
            sacct("7_1.batch"),
            sacct("7_[2-9]", state="PENDING", Start="Unknown"),
            sacct("8", state="CANCELLED by 1000", Start="None"),
            sacct("9", state="RUNNING", End="Unknown"),
        )
    )
    trace = read_trace(text)

    assert [job.job_id for job in trace.jobs] == ["7_1"]
    assert dict(trace.skipped) == {
        "steps": 1,
        "pending: not ended": 1,
        "never started": 1,
        "running: not ended": 1,
    }


def test_of_a_requeued_job_the_last_run_counts_from_its_first_submission():
    later = {"Submit": "2026-03-02T10:00:00", "Start": "2026-03-02T10:05:00"}
    text = SACCT + sacct(state="NODE_FAIL") + sacct(End="2026-03-02T10:06:00", **later)
    trace = read_trace(text)

    assert [(job.submit_s, job.duration_s) for job in trace.jobs] == [(8 * 3600, 60)]
    assert dict(trace.skipped) == {"earlier runs": 1}


@pytest.mark.parametrize(
    ("limit", "expected_s"), [("UNLIMITED", None), ("30:00", 1800), ("02:00:05", 7205)]
)
def test_time_limits_of_every_form(limit, expected_s):
    assert read_trace(SACCT + sacct(Timelimit=limit)).jobs[0].time_limit_s == expected_s


@pytest.mark.parametrize(
    "change",
    [
        {"Submit": "yesterday"},
        {"End": "2026-03-02T07:00:00"},
        {"ReqTRES": "cpu=many"},
        {"ReqTRES": "mem=lots"},
        {"Timelimit": "soon"},
    ],
)
def test_broken_sacct_lines_are_named(change):
    with pytest.raises(BadTrace, match="line 2: "):
        read_trace(SACCT + sacct(**change))
