"""What jobs used by sacct's steps, and what of it is not to be believed."""

import pytest

from bench.sacct_history import MONDAY_S, ran, row, step, text, tres, when
from tidegate.sim.advise.usage import COLUMNS, Used, parted, read_usage
from tidegate.sim.replay.trace import BadTrace, read_trace

NVML = tres(gpus=0.9, gpu_gib=8)
UNSIGNED = "18446744073709551614"


def used(*jobs, sums_gpus=True, job_id="7"):
    lines = text(line for job in jobs for line in job)
    runs = read_usage(lines, read_trace(lines), sums_gpus=sums_gpus)
    return next(run for run in runs if run.job.job_id == job_id)


def test_a_job_has_what_its_batch_step_used():
    found = used(ran("7", used=tres(memory_gib=6, cpus=2.5, gpus=0.87, gpu_gib=9)))

    assert found.used == Used(6144, 2.5, 0.87, 9216)
    assert (found.user, found.name, found.state) == ("ada", "train-1", "COMPLETED")


def test_steps_beside_each_other_add_up_and_steps_after_each_other_do_not():
    steps = [
        step("7.batch", 0, 3600, tres(memory_gib=1, cpus=0.5)),
        step("7.0", 0, 1800, tres(memory_gib=10, cpus=2, lasts_s=1800)),
        step("7.1", 1800, 1800, tres(memory_gib=20, cpus=1, lasts_s=1800)),
    ]

    found = used(ran("7", steps=steps)).used

    assert found.memory_mib == 21 * 1024
    assert found.cpus == pytest.approx(2.5)


def test_bytes_have_no_unit():
    assert used(ran("7", used="cpu=00:10:00,mem=1073741824")).used.memory_mib == 1024


@pytest.mark.parametrize(
    "told",
    [
        "",
        "energy=0",
        f"cpu=00:10:00,mem={UNSIGNED}",
        "cpu=00:10:00,mem=16E",
        "cpu=00:10:00,mem=-4K",
        "cpu=00:10:00,mem=nan",
    ],
)
def test_memory_that_is_missing_or_absurd_is_not_known(told):
    assert used(ran("7", used=told)).used.memory_mib is None


def test_of_a_long_step_without_figures_the_whole_job_is_not_known():
    steps = [step("7.batch", 0, 3600, tres()), step("7.0", 0, 3600, "")]

    assert used(ran("7", steps=steps)).used == Used()


def test_steps_that_were_too_short_to_be_looked_at_or_hold_nothing_do_not_matter():
    end = {"Start": when(0), "End": "Unknown", "State": "CANCELLED"}
    steps = [
        step("7.batch", 0, 3600, tres(memory_gib=4)),
        step("7.0", 60, 0, ""),
        step("7.extern", 0, 3600, ""),
        row("7.1", **end),
    ]

    assert used(ran("7", steps=steps)).used.memory_mib == 4096


def test_a_counter_that_began_anew_or_more_cpu_time_than_there_was_is_not_believed():
    assert used(ran("7", cpus=8, used=tres(cpus=17))).used.cpus is None
    assert used(ran("7", used="cpu=-5,mem=4G")).used.cpus is None
    assert used(ran("7", gpus=1, used=tres(gpus=1.2, gpu_gib=4))).used.gpus is None
    wild = f"cpu=00:10:00,gres/gpumem=4G,gres/gpuutil={UNSIGNED},mem=4G"
    assert used(ran("7", used=wild)).used.gpus is None


def test_a_job_of_zero_seconds_is_read():
    assert used(ran("7", lasts_s=0, used=tres(lasts_s=0))).used.cpus == 0


def test_no_gpu_used_is_believed_only_where_the_partition_s_gpus_are_seen_at_all():
    # Without NVML Slurm may print 0, whatever the GPUs do.
    nothing = tres(gpus=0, gpu_gib=0)
    blind = [ran("7", used=nothing), ran("8", used=NVML, partition="other")]

    assert used(*blind).used.gpus is None
    assert used(*blind, ran("9", used=NVML)).used.gpus == 0


def test_of_parts_of_a_gpu_nobody_knows():
    lines = ran("7", used=tres(gpus=0, gpu_gib=0))
    part = [line.replace("gres/gpu=1", "gres/gpu:a100_1g.5gb=1,gres/gpu=1") for line in lines]

    assert used(part, ran("9", used=NVML)).used.gpus is None


def test_several_gpus_of_a_task_are_known_only_where_slurm_adds_them_up():
    # 22.05 and 23.11 keep the last GPU of a task: eight that compute look like one.
    last = ran("7", gpus=8, used=tres(gpus=0.9, gpu_gib=9))
    proof = ran("9", gpus=8, used=tres(gpus=7.1, gpu_gib=70))

    assert used(last, proof, sums_gpus=False).used.gpus is None
    assert used(last).used.gpus is None
    assert used(last, proof).used.gpus == 0.9
    assert used(ran("7", gpus=1, used=NVML), sums_gpus=False).used.gpus == 0.9


def test_the_runs_of_a_requeued_job_do_not_add_up_and_the_larger_one_counts():
    first = ran("7", 0, 600, state="REQUEUED", used=tres(memory_gib=20, lasts_s=600))
    cut = ran("7", 0, 600, state="NODE_FAIL", used=tres(memory_gib=20, lasts_s=600))
    last = ran("7", 900, 3600, used=tres(memory_gib=8))

    assert used(first, last).used.memory_mib == 20 * 1024
    assert used(cut, last).used.memory_mib == 20 * 1024
    assert used(cut, last).state == "COMPLETED"


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "COMPLETED"])
def test_memory_that_ran_out_is_not_forgotten_by_a_later_run_or_the_job_s_own_state(state):
    out = [step("7.batch", 0, 60, tres()), step("7.0", 0, 60, tres(), "OUT_OF_MEMORY")]
    first, last = ran("7", 0, 60, state=state, steps=out), ran("7", 900)

    assert used(first, last).state == "OUT_OF_MEMORY"


def test_a_deleted_user_has_no_name_and_tasks_of_arrays_are_jobs():
    assert used(ran("7_3", user=""), job_id="7_3").user == ""


def test_a_name_may_hold_what_separates_the_others():
    assert used(ran("7", name="a|b")).name == "a|b"


def test_a_history_without_usage_says_how_to_export_it():
    lines = text(ran("7")).replace("TRESUsageInTot", "TRESUsageInAve")

    with pytest.raises(BadTrace, match=f"TRESUsageInTot are missing.*{COLUMNS[-1]}"):
        read_usage(lines, read_trace(lines), sums_gpus=True)
    with pytest.raises(BadTrace):
        read_usage("job_id,submit_s\n", read_trace(text(ran("7"))), sums_gpus=True)


NODE = "i-0123456789abcdef0"


def told(*lines, job_id="7", **changes):
    """How many GPUs a job of four touched, by what its node said."""
    job = ran(job_id, **{"gpus": 4, "used": tres(), **changes})
    beside = ran("8", gpus=4, used=tres())
    rows = [*job, *beside]
    began = round(MONDAY_S)
    of_beside = f"%2026-03-02|8|{NODE}|{began}|0|14400|4|15"
    plain, gpus = parted(text([*rows, *(each.format(began) for each in lines), of_beside]))
    runs = read_usage(plain, read_trace(plain), sums_gpus=True, gpus_told=gpus)
    return next(run for run in runs if run.job.job_id == job_id).used.gpus_touched


def test_gpus_that_a_node_saw_doing_anything_are_counted_over_days_and_nodes():
    one = f"%2026-03-02|7|{NODE}|{{}}|3600|7200|4|1"
    other = f"%2026-03-03|7|{NODE}|{{}}|7200|7200|4|4"

    assert told(one, other) == 2
    assert told(one, one) == 1


@pytest.mark.parametrize(
    "line",
    [
        f"%2026-03-02|7|{NODE}|{{}}|3600|14400",  # of an agent that did not look
        f"%2026-03-02|7|{NODE}|{{}}|3600|12000|4|1",  # a sixth of it was not seen
        f"%2026-03-02|7|{NODE}|{{}}|3600|14400|3|1",  # not all of its GPUs
        f"%2026-03-02|9|{NODE}|{{}}|3600|14400|4|1",  # another job
        f"%2026-03-02|7|{NODE}|12|3600|14400|4|1",  # another run
        "%2026-03-02|7|head|{}|3600|14400|4|1",
    ],
)
def test_what_is_not_known_of_nearly_all_of_the_run_is_not_known(line):
    assert told(line) is None


def test_a_job_on_two_nodes_is_not_judged():
    assert told(f"%2026-03-02|7|{NODE}|{{}}|3600|28800|4|1", nodes=2, gpus=8) is None


def test_no_gpu_at_all_is_believed_where_another_job_was_seen_to_use_one():
    none = f"%2026-03-02|7|{NODE}|{{}}|14400|14400|4|0"

    assert told(none) == 0
    assert told(none, partition="other") is None
