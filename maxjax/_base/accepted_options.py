"""Options of JAX that change nothing here, and why.

``config.update`` takes what JAX takes, and their environment variables are read, so that a script
that sets them runs; the first value that asks for something gives one warning, of no effect. The
options that act are in ``config.py``.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from maxjax._base.config import config
from maxjax._base.option_kinds import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    OPTIONAL_BOOLEAN,
    OPTIONAL_STRING,
    Kind,
    one_of,
)

_LEVEL = one_of(("UNKNOWN", "O0", "O1", "O2", "O3"))
_ERRORS = one_of(("ignore", "raise"))


class RuntimeTracebackMode(enum.StrEnum):
    """How much of Python's traceback a program records."""

    OFF = "off"
    ON = "on"
    FULL = "full"

    @classmethod
    def _missing_(cls, value: object) -> RuntimeTracebackMode | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


def _refuse_all_but_text(value: object) -> None:
    if value is not None and not isinstance(value, (str, dict)):
        raise ValueError("new string config value must be None or of type dict | str, got "
                         f"{value} of type {type(value)}.")


class _Accepted(NamedTuple):
    """JAX's default of an option, its kind where that does not follow from it, and the values
    besides the default that maxjax satisfies."""

    default: Any
    kind: Kind | None = None
    suffices: tuple[Any, ...] = ()


class _Flag(NamedTuple):
    """A flag's default, the kind of its environment variable if it has one, and the values besides
    the default that maxjax satisfies."""

    default: Any
    read: Kind | None = None
    suffices: tuple[Any, ...] = ()


# Why they change nothing -> their names, with JAX's defaults.
_ACCEPTED: dict[str, dict[str, Any]] = {
    "XLA is not what compiles here": {
        "jax_bcoo_cusparse_lowering": False,
        "jax_compiler_detailed_logging_min_ops": _Flag(10, INTEGER),
        "jax_compiler_enable_remat_pass": True,
        "jax_disable_most_optimizations": _Flag(False, BOOLEAN),
        "jax_dump_ir_modes": _Flag("stablehlo", ANYTHING), "jax_dump_ir_to": _Flag("", ANYTHING),
        "jax_embedded_constants_max_bytes": 32, "jax_enable_pgle": False,
        "jax_experimental_unsafe_xla_runtime_errors": False,
        "jax_hlo_source_file_canonicalization_regex": _Accepted(None, OPTIONAL_STRING),
        "jax_include_debug_info_in_dumps": _Flag(True, BOOLEAN),
        "jax_include_full_tracebacks_in_locations": True,
        "jax_memory_fitting_level": _Accepted("O2", _LEVEL),
        "jax_optimization_level": _Accepted("UNKNOWN", _LEVEL),
        "jax_pgle_aggregation_percentile": 90, "jax_pgle_profiling_runs": 3,
        "jax_ragged_dot_use_ragged_dot_instruction": True,
        "jax_remove_custom_partitioning_ptr_from_cache_key": False,
        "jax_source_url_schema": _Accepted(None, OPTIONAL_STRING),
        "jax_threefry_gpu_kernel_lowering": False, "jax_traceback_in_locations_limit": 100,
        "jax_use_magma": _Accepted("auto", one_of(("off", "on", "auto")), ("off",)),
        "jax_use_shardy_partitioner": True, "jax_use_simplified_jaxpr_constants": False,
        "jax_use_cpp_shard_args": False,
        "jax_use_hlo_logistic_lowering": _Accepted(None, OPTIONAL_BOOLEAN), "jax_use_rgv3": True,
        "jax_xla_profile_version": 0},
    "kernels are kept by maxjax's own cache (MAXJAX_CACHE_DIR, MAXJAX_CACHE_MAX_BYTES)": {
        "jax_compilation_cache_check_contents": False,
        "jax_compilation_cache_dir": _Accepted(None, OPTIONAL_STRING),
        "jax_compilation_cache_expect_pgle": False,
        "jax_compilation_cache_include_metadata_in_key": False,
        "jax_compilation_cache_max_size": -1, "jax_enable_compilation_cache": True,
        "jax_persistent_cache_enable_xla_caches": _Accepted(
            "xla_gpu_per_fusion_autotune_cache_dir", OPTIONAL_STRING, ("none", None)),
        "jax_persistent_cache_min_compile_time_secs": 1.0,
        "jax_persistent_cache_min_entry_size_bytes": 0, "jax_raise_persistent_cache_errors": False,
        "jax_share_binary_between_hosts": False,
        "jax_share_binary_between_hosts_timeout_ms": 1200000},
    "there is one process": {
        "jax_check_proxy_envs": _Flag(True),
        "jax_cross_host_transfer_socket_address": _Flag(""),
        "jax_cross_host_transfer_timeout_seconds": _Flag(None),
        "jax_cross_host_transfer_transfer_size": _Flag(None),
        "jax_cross_host_transport_addresses": _Flag(""), "jax_distributed_debug": False,
        "jax_enable_preemption_service": True, "jax_enable_recoverability": False,
        "jax_force_dcn_cross_host_transfers": _Flag(False), "jax_serialization_version": 0,
        "jax_sort_devices_by_process_index": _Flag(True), "mock_num_gpu_processes": _Flag(0),
        # What it would refuse takes more than one process.
        "jax_thread_guard": _Accepted(False, suffices=(True,))},
    "connections between processes are protected by a secret of the job (docs/distributed.md)": {
        "jax_distributed_verify_secure_credentials": False,
        "jax_mtls_ca_file": _Accepted(None, OPTIONAL_STRING),
        "jax_mtls_cert_file": _Accepted(None, OPTIONAL_STRING),
        "jax_mtls_key_file": _Accepted(None, OPTIONAL_STRING),
        "jax_mtls_peer_uri_prefix": _Accepted(None, OPTIONAL_STRING)},
    "arrays lie in the host's memory, and nothing is transferred": {
        "jax_array_garbage_collection_guard": _Accepted(
            None, one_of((None, "allow", "log", "fatal")), ("allow",))},
    "devices are chosen by maxjax": {
        "jax_backend_target": _Flag("", ANYTHING),
        # Programs run while they are called: what False asks for.
        "jax_cpu_enable_async_dispatch": _Flag(True, suffices=(False,)),
        "jax_cuda_visible_devices": _Flag("all"),
        "jax_debug_leaked_clients_on_clear_backends": False,
        "jax_mock_gpu_topology": _Flag(""),
        "jax_oneapi_visible_devices": _Flag("all"),
        "jax_pjrt_client_create_options": _Accepted(None, ANYTHING),
        "jax_rocm_visible_devices": _Flag("all")},
    "there is no Pallas, no Mosaic and no jax2tf": {
        "jax2tf_associative_scan_reductions": False,
        "jax2tf_default_native_serialization": True, "jax_mosaic_allow_hlo": False,
        "jax_pallas_enable_debug_checks": False, "jax_pallas_poison_buffers": False,
        "jax_mosaic_unzip_debug_locations": True,
        "jax_pallas_auto_assign_collective_ids": _Accepted("no", one_of(("no", "yes", "override"))),
        "jax_pallas_auto_assign_collective_ids_limit": 25,
        "jax_pallas_verbose_errors": _Flag(False, BOOLEAN),
        "jax_use_emit_pipeline_primitive": False},
    "it chooses between implementations inside JAX": {
        "check_vma": False, "eager_constant_folding": False,
        "jax_accurate_erf_inv": False, "jax_custom_jvp3": False, "jax_custom_vjp3": False,
        "jax_export_deserialize_expired_versions": False,
        "jax_remat_barrier_no_cotangents": False,
        "jax_export_calling_convention_version": 10,
        "jax_export_ignore_forward_compatibility": False, "jax_mutable_array_checks": True,
        "jax_remat3": False,
        "jax_remove_size_one_mesh_axis_from_type": False, "jax_scan3": False,
        "jax_use_direct_linearize": True},
    "a check or a message that maxjax does not have": {
        "jax_captured_constants_report_frames": 0,
        "jax_enable_checks": False,
        "jax_error_checking_behavior_divide": _Accepted("ignore", _ERRORS),
        "jax_error_checking_behavior_nan": _Accepted("ignore", _ERRORS),
        "jax_error_checking_behavior_oob": _Accepted("ignore", _ERRORS),
        "jax_log_checkpoint_residuals": False,
        # Text is never in colour: what False asks for.
        "jax_pprint_use_color": _Accepted(True, suffices=(False,)),
        "jax_send_traceback_to_runtime": RuntimeTracebackMode.OFF,
        "jax_tracer_error_num_traceback_frames": _Flag(5, INTEGER)},
}

# Name -> why it changes nothing.
reasons: dict[str, str] = {}

for _reason, _options in _ACCEPTED.items():
    for _name, _given in _options.items():
        reasons[_name] = _reason
        _doc = f"Accepted: {_reason}."
        if isinstance(_given, _Flag):
            config.define_flag(
                _name, _given.default, _doc, None if _given.read is None else _name.upper(),
                _given.read or ANYTHING, without_effect=_reason,
                suffices=_given.suffices)
        else:
            _accepted = _given if isinstance(_given, _Accepted) else _Accepted(_given)
            config.define(_name, _accepted.default, _doc, _accepted.kind, without_effect=_reason,
                          suffices=_accepted.suffices)

config.option("jax_pjrt_client_create_options").add_check(_refuse_all_but_text)
