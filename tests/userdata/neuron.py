"""What neuron-monitor says, in the form that AWS documents.

Source: AWS Neuron documentation, "Neuron Monitor User Guide", "The JSON output format".
"""

from collections.abc import Mapping, Sequence
from typing import Any

GIB = 1 << 30


def program(
    use_percent: Mapping[int, float],
    *,
    gib: Mapping[int, int] | None = None,
    error: str = "",
    pid: int = 4711,
) -> dict[str, Any]:
    """One that has these NeuronCores. `gib`: of memory for it on their devices."""
    cores = {
        str(core): {"neuroncore_utilization": value, "flops": 1_234_567_891_011}
        for core, value in use_percent.items()
    }
    held = {
        str(core): {"constants": GIB // 2, "model_code": GIB // 2, "tensors": (size - 1) * GIB}
        for core, size in (gib or {}).items()
    }
    used = {
        "host": 6_997_643_264,
        "neuron_device": sum((gib or {}).values()) * GIB,
        "usage_breakdown": {"host": {"tensors": 0}, "neuroncore_memory_usage": held},
    }
    return {
        "pid": pid,
        "neuron_runtime_tag": str(pid),
        "error": error,
        "report": {
            "neuroncore_counters": {"period": 30.0, "neuroncores_in_use": cores, "error": ""},
            "memory_used": {
                "period": 30.0,
                "neuron_runtime_used_bytes": used,
                "loaded_models": [],
                "error": "",
            },
        },
    }


def device(number: int, corrected: int = 0, uncorrected: int = 0) -> dict[str, int]:
    """One corrected error of the DRAM, the others of the SRAM, as are those that were not."""
    return {
        "neuron_device_index": number,
        "mem_ecc_corrected": min(corrected, 1),
        "mem_ecc_uncorrected": 0,
        "sram_ecc_uncorrected": uncorrected,
        "sram_ecc_corrected": max(corrected - 1, 0),
    }


def report(
    programs: Sequence[dict[str, Any]] | None = (),
    devices: Sequence[dict[str, int]] = (device(0), device(1)),
    error: str = "",
) -> dict[str, Any]:
    """Of a node with two devices of two NeuronCores and 32 GiB."""
    return {
        "neuron_runtime_data": programs if programs is None else list(programs),
        "system_data": {
            "neuron_hw_counters": {"period": 30.0, "neuron_devices": list(devices), "error": ""}
        },
        "instance_info": {"instance_id": "i-0011223344556677a", "error": ""},
        "neuron_hardware_info": {
            "neuron_device_type": "trainium1",
            "neuroncore_version": "v2",
            "neuron_device_count": 0 if error else 2,
            "neuron_device_memory_size": 32 * GIB,
            "neuroncore_per_device_count": 2,
            "error": error,
        },
    }
