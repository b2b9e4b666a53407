"""Options of JAX 0.10.2 that are accepted and change nothing here, and why.

``config.update`` takes them, ``config.read`` gives them back, and their environment variables are
read, so that a script that sets them runs. What acts is in ``config.py``.
"""

from __future__ import annotations

from typing import Any

from maxjax._base.config import config

_GUARDS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")

# Why they change nothing -> their names, with JAX's defaults.
_ACCEPTED: dict[str, dict[str, Any]] = {
    "XLA is not what compiles here": {
        "jax_allow_f16_reductions": True, "jax_bcoo_cusparse_lowering": False,
        "jax_compiler_detailed_logging_min_ops": 10, "jax_compiler_enable_remat_pass": True,
        "jax_disable_most_optimizations": False, "jax_dump_ir_modes": "stablehlo",
        "jax_dump_ir_to": "", "jax_embedded_constants_max_bytes": 32, "jax_enable_pgle": False,
        "jax_exec_time_optimization_effort": 0.0,
        "jax_experimental_unsafe_xla_runtime_errors": False,
        "jax_hlo_source_file_canonicalization_regex": None,
        "jax_include_debug_info_in_dumps": True, "jax_include_full_tracebacks_in_locations": True,
        "jax_memory_fitting_effort": 0.0, "jax_memory_fitting_level": ("O2", _LEVELS),
        "jax_optimization_level": ("UNKNOWN", _LEVELS), "jax_pgle_aggregation_percentile": 90,
        "jax_pgle_profiling_runs": 3, "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
        "jax_ragged_dot_use_ragged_dot_instruction": True,
        "jax_remove_custom_partitioning_ptr_from_cache_key": False,
        "jax_source_url_schema": None, "jax_threefry_gpu_kernel_lowering": False,
        "jax_traceback_in_locations_limit": 100, "jax_use_magma": ("auto", ("off", "on", "auto")),
        "jax_use_shardy_partitioner": True, "jax_use_simplified_jaxpr_constants": False,
        "jax_xla_backend": "", "jax_xla_profile_version": 0},
    "kernels are kept by maxjax's own cache (MAXJAX_CACHE_DIR, MAXJAX_CACHE_MAX_BYTES)": {
        "jax_compilation_cache_check_contents": False, "jax_compilation_cache_dir": None,
        "jax_compilation_cache_expect_pgle": False,
        "jax_compilation_cache_include_metadata_in_key": False,
        "jax_compilation_cache_max_size": -1, "jax_enable_compilation_cache": True,
        "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
        "jax_persistent_cache_min_compile_time_secs": 1.0,
        "jax_persistent_cache_min_entry_size_bytes": 0, "jax_raise_persistent_cache_errors": False,
        "jax_share_binary_between_hosts": False,
        "jax_share_binary_between_hosts_timeout_ms": 1200000},
    "there is one process, and one memory": {
        "jax_check_proxy_envs": True,
        "jax_cpu_collectives_implementation": ("gloo", (None, "gloo", "mpi", "megascale")),
        "jax_cpu_get_global_topology_timeout_minutes": 5,
        "jax_cpu_get_local_topology_timeout_minutes": 2,
        "jax_cross_host_transfer_socket_address": "",
        "jax_cross_host_transfer_timeout_seconds": None,
        "jax_cross_host_transfer_transfer_size": None,
        "jax_cross_host_transport_addresses": "", "jax_distributed_debug": False,
        "jax_enable_preemption_service": True, "jax_enable_recoverability": False,
        "jax_force_dcn_cross_host_transfers": False, "jax_serialization_version": 0,
        "jax_sort_devices_by_process_index": True, "mock_num_gpu_processes": 0,
        "jax_array_garbage_collection_guard": (None, (None, "allow", "log", "fatal")),
        "jax_transfer_guard": (None, _GUARDS),
        "jax_transfer_guard_device_to_device": (None, _GUARDS),
        "jax_transfer_guard_device_to_host": (None, _GUARDS),
        "jax_transfer_guard_host_to_device": (None, _GUARDS)},
    "devices are chosen by maxjax": {
        "jax_backend_target": "", "jax_cpu_enable_async_dispatch": True,
        "jax_cuda_visible_devices": "all", "jax_debug_leaked_clients_on_clear_backends": False,
        "jax_mock_gpu_topology": "", "jax_num_cpu_devices": -1,
        "jax_oneapi_visible_devices": "all", "jax_pjrt_client_create_options": None,
        "jax_rocm_visible_devices": "all"},
    "there is no Pallas, no Mosaic and no jax2tf": {
        "jax2tf_associative_scan_reductions": False,
        "jax2tf_default_native_serialization": True, "jax_mosaic_allow_hlo": False,
        "jax_pallas_enable_debug_checks": False, "jax_pallas_poison_buffers": False,
        "jax_pallas_use_mosaic_gpu": True, "jax_pallas_verbose_errors": False,
        "jax_use_emit_pipeline_primitive": False},
    "it chooses between implementations inside JAX": {
        "check_vma": False, "eager_constant_folding": False, "jax_auto_pcast": True,
        "jax_custom_vjp3": False, "jax_disable_bwd_checks": False,
        "jax_disable_vmap_shmap_error": False, "jax_disallow_mesh_context_manager": False,
        "jax_enable_custom_prng": False, "jax_export_calling_convention_version": 10,
        "jax_export_ignore_forward_compatibility": False,
        "jax_high_dynamic_range_gumbel": False, "jax_mutable_array_checks": True,
        "jax_refs_to_pins": False, "jax_remat3": False,
        "jax_remove_size_one_mesh_axis_from_type": False, "jax_scan3": False,
        "jax_softmax_custom_jvp": False, "jax_thread_guard": False,
        "jax_use_direct_linearize": True},
    "a check or a message that maxjax does not have": {
        "jax_captured_constants_report_frames": 0,
        "jax_captured_constants_warn_bytes": 2000000000, "jax_check_static_indices": False,
        "jax_debug_key_reuse": False, "jax_debug_log_modules": "", "jax_enable_checks": False,
        "jax_error_checking_behavior_divide": ("ignore", ("ignore", "raise")),
        "jax_error_checking_behavior_nan": ("ignore", ("ignore", "raise")),
        "jax_error_checking_behavior_oob": ("ignore", ("ignore", "raise")),
        "jax_explain_cache_misses": False,
        "jax_explicit_x64_dtypes": ("warn", ("allow", "warn", "error")),
        "jax_legacy_prng_key": ("allow", ("allow", "warn", "error")),
        "jax_log_checkpoint_residuals": False, "jax_logging_level": "NOTSET",
        "jax_no_execution": False, "jax_pprint_use_color": True,
        "jax_send_traceback_to_runtime": "off", "jax_tracer_error_num_traceback_frames": 5},
}

# Name -> why it changes nothing.
reasons: dict[str, str] = {}

for _reason, _options in _ACCEPTED.items():
    for _name, _default in _options.items():
        _value, _choices = _default if isinstance(_default, tuple) else (_default, None)
        config.define(_name, _value, f"Accepted: {_reason}.", _choices)
        reasons[_name] = _reason
