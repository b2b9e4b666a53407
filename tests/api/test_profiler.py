"""Profiles, monitoring, and the modules for one process of a job."""

import gzip
import json
import time
import warnings

import jax as real_jax
import numpy as np
import pytest

import maxjax as jax
import maxjax.experimental.layout
import maxjax.experimental.multihost_utils
import maxjax.numpy as jnp
from maxjax import distributed, monitoring, profiler
from maxjax._base import spans
from maxjax.experimental.compilation_cache import compilation_cache
from tests.support import trace_processor


def events(folder):
    path, = folder.rglob("perfetto_trace.json.gz")
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_a_profile_has_the_tiers_spans(tmp_path):
    @jax.jit
    def fun(x):
        return jnp.sin(x) + 1

    with (profiler.trace(tmp_path, create_perfetto_trace=True),
          profiler.StepTraceAnnotation("train", step_num=3)):
        fun(jnp.ones(3) + 2).block_until_ready()
    spans = {event["name"]: event for event in events(tmp_path) if event["ph"] == "X"}
    assert {"trace fun", "fun (tier 0)", "add", "train"} <= set(spans)
    step, program = spans["train"], spans["fun (tier 0)"]
    assert step["args"]["step_num"] == "3"
    assert step["ts"] <= program["ts"]
    assert program["ts"] + program["dur"] <= step["ts"] + step["dur"]
    names = [event["args"]["name"] for event in events(tmp_path) if event["ph"] == "M"]
    assert "/host:CPU" in names


def test_a_profile_has_plans_and_states(tmp_path):
    """The layout is TensorBoard's; times nest, and a call says how it ran."""
    @jax.jit
    def planned(x):
        return jnp.tanh(x @ x).sum()

    x = jnp.ones((8, 8))
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        planned(x).block_until_ready()
        jax.debug.explain(planned, x)
        planned(x).block_until_ready()
    spans = [event for event in events(tmp_path) if event["ph"] == "X"]
    assert [event["args"]["backend"] for event in spans if event["name"] == "plan planned"] == [
        "mojo"]
    calls = [event for event in spans if event["name"].startswith("planned (")]
    assert len(calls) == 2 and {event["cat"] for event in calls} <= {"tier 0", "tier 1"}
    assert all(event["args"]["state"] in ("interpreted", "native", "compiled")
               for event in calls)
    kept, = tmp_path.rglob("*.trace.json.gz")
    assert kept.relative_to(tmp_path).parts[:2] == ("plugins", "profile")
    assert {event["ph"] for event in events(tmp_path)} == {"X", "M"}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in spans)


def test_perfetto_opens_a_profile(tmp_path):
    """What Perfetto's trace processor makes of it, by its own SQL."""
    @jax.jit
    def program(x):
        return jnp.sin(x) + 1

    started = spans.clock()
    with profiler.trace(tmp_path), profiler.StepTraceAnnotation("train", step_num=3):
        program(jnp.ones(3) + 2).block_until_ready()
        # One thread hears of both, which were compiled at a time.
        spans.add("compile first", "compile", started)
        time.sleep(0.001)
        spans.add("compile second", "compile", started + 1000)
    if trace_processor.missing():
        pytest.skip(trace_processor.missing())
    path, = tmp_path.rglob("*.trace.json.gz")
    with trace_processor.opened(path) as profile:
        assert trace_processor.lost(profile) == {}
        rows = list(profile.query("select name, category, dur from slice order by ts"))
        found = {row.name: row.category for row in rows}
        assert {"trace program": "trace", "program (tier 0)": "tier 0", "add": "operation",
                "train": "annotation", "compile first": "compile",
                "compile second": "compile"}.items() <= found.items()
        inside = profile.query(
            "select parent.name as outer, slice.name as inner from slice "
            "join slice parent on slice.parent_id = parent.id")
        assert ("train", "program (tier 0)") in {(row.outer, row.inner) for row in inside}
        process, = profile.query("select name from process where name is not null")
        assert process.name == "/host:CPU"
        argument, = profile.query(
            "select display_value as value from args join slice using (arg_set_id) "
            "where slice.name = 'train' and key = 'args.step_num'")
        assert argument.value == "3"


def shown(data):
    """The lines of a profile's first plane, with what JAX's and maxjax's objects have in common."""
    plane = data.find_plane_with_name("/host:CPU")
    return [(line.name, [(event.name, event.start_ns, event.duration_ns, list(event.stats))
                         for event in line.events]) for line in plane.lines]


def test_jax_reads_a_profile(tmp_path):
    with (profiler.trace(tmp_path) as session,
          profiler.TraceAnnotation("load", part=-3, ratio=0.5, file="first")):
        jnp.ones(3).block_until_ready()
    path, = tmp_path.rglob("*.xplane.pb")
    theirs = real_jax.profiler.ProfileData.from_file(str(path))
    ours = profiler.ProfileData.from_file(str(path))
    assert [plane.name for plane in theirs.planes] == [plane.name for plane in ours.planes]
    line, = [events for name, events in shown(theirs) if name == "MainThread"]
    assert ("category", "annotation") in line[0][3] and line[0][0] == "load"
    for name, start, duration, stats in line:
        own, = [event for _, events in shown(ours) for event in events
                if event[:2] == (name, start)]
        assert own[2] == duration
        assert own[3] == [pair for pair in stats if pair[0] != "category"]
    assert shown(ours) == shown(session.profile_data)


def test_jax_s_profiles_are_read(tmp_path):
    with real_jax.profiler.trace(tmp_path), real_jax.profiler.TraceAnnotation("load", part=3):
        real_jax.numpy.ones(3).block_until_ready()
    path, = tmp_path.rglob("*.xplane.pb")
    theirs = real_jax.profiler.ProfileData.from_file(str(path))
    ours = profiler.ProfileData.from_file(str(path))
    assert [plane.name for plane in ours.planes] == [plane.name for plane in theirs.planes]
    assert shown(ours) == shown(theirs)
    event, = [event for _, events in shown(ours) for event in events if event[0] == "load"]
    assert ("part", 3) in event[3]


def test_what_is_no_profile_is_refused(tmp_path):
    with profiler.trace(tmp_path), profiler.TraceAnnotation("load", part=3):
        pass
    path, = tmp_path.rglob("*.xplane.pb")
    whole = path.read_bytes()
    for end in range(len(whole)):
        try:
            list(profiler.ProfileData.from_serialized_xspace(whole[:end]).planes)
        except RuntimeError as error:
            assert "Failed to parse XSpace" in str(error)
    for written in (b"\xff\xff", b"\x08\x01", b"\x0a\x02\x10\x01", b"\x0f"):
        with pytest.raises(RuntimeError, match="Failed to parse XSpace"):
            profiler.ProfileData.from_serialized_xspace(written)
    with pytest.raises(RuntimeError, match="NOT_FOUND: /nowhere; No such file"):
        profiler.ProfileData.from_file("/nowhere")


def test_nothing_is_recorded_outside(tmp_path):
    assert not profiler.TraceAnnotation.is_enabled()
    profiler.start_trace(tmp_path, create_perfetto_trace=True)
    with pytest.raises(RuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)
    assert profiler.TraceAnnotation.is_enabled()
    profiler.stop_trace()
    with profiler.TraceAnnotation("late"):
        pass
    assert not [event for event in events(tmp_path) if event["ph"] == "X"]
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_a_decorated_function_is_a_span(tmp_path):
    @profiler.annotate_function
    def load():
        return 3

    with profiler.trace(tmp_path, create_perfetto_trace=True):
        assert load() == 3
    assert load.__name__ == "load"
    assert any("load" in event["name"] for event in events(tmp_path) if event["ph"] == "X")


def test_the_memory_profile_names_arrays():
    kept = jnp.ones((3, 7), "float32").block_until_ready()
    assert b"float32[3,7]" in gzip.decompress(profiler.device_memory_profile())
    del kept


def test_the_server_says_that_there_is_none():
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    with pytest.warns(RuntimeWarning, match="no profiler server"):
        profiler.start_server(9999)
    with pytest.raises(ValueError, match="Only one"), warnings.catch_warnings():
        profiler.start_server(9999)
    profiler.stop_server()


def test_listeners():
    heard = []

    def listen(*args, **kwargs):
        heard.append((args, kwargs))

    monitoring.register_event_listener(listen)
    monitoring.register_event_duration_secs_listener(listen)
    monitoring.register_event_time_span_listener(listen)
    monitoring.register_scalar_listener(listen)
    monitoring.record_event("/a", x=1)
    monitoring.record_event_duration_secs("/b", 2.0, k="z")
    monitoring.record_event_time_span("/c", 1.0, 2.0)
    monitoring.record_scalar("/d", 3)
    assert heard == [(("/a",), {"x": 1}), (("/b", 2.0), {"k": "z"}), (("/c", 1.0, 2.0), {}),
                     (("/d", 3), {})]
    monitoring.unregister_event_duration_listener(listen)
    with pytest.raises(AssertionError):
        monitoring.unregister_event_duration_listener(listen)
    monitoring.clear_event_listeners()
    del heard[:]
    monitoring.record_event("/a")
    assert not heard


def test_tracing_is_reported():
    heard = []
    monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **more: heard.append((event, more)))
    jax.jit(lambda x: x * 7)(1.0)
    monitoring.clear_event_listeners()
    assert heard == [("/jax/core/compile/jaxpr_trace_duration", {"fun_name": "<lambda>"})]


def test_a_job_of_one_process():
    for args, error, text in [
            ((), ValueError, "coordinator_address should be defined."),
            (("h:1",), ValueError, "Number of processes must be defined."),
            (("h:1", 1), ValueError, "The process id of the current process must be defined."),
            (("h:1", 2, 0), RuntimeError, "must be called before")]:
        with pytest.raises(error, match=text):
            distributed.initialize(*args)
    distributed.initialize("h:1", 1, 0)
    assert distributed.is_initialized()
    with pytest.raises(RuntimeError, match="only be called once"):
        distributed.initialize("h:1", 1, 0)
    distributed.shutdown()
    assert not distributed.is_initialized()


def test_multihost_utils_of_one_process():
    multihost = jax.experimental.multihost_utils
    gathered = multihost.process_allgather({"a": 3.0, "b": jnp.arange(2)})
    assert gathered["a"].shape == (1,) and gathered["b"].shape == (1, 2)
    tiled = multihost.process_allgather(jnp.arange(2), tiled=True)
    assert isinstance(tiled, np.ndarray) and tiled.shape == (2,)
    assert multihost.broadcast_one_to_all(jnp.arange(2)).tolist() == [0, 1]
    multihost.sync_global_devices("here")
    multihost.assert_equal({"a": 1})
    assert not multihost.reached_preemption_sync_point(1)


def test_layouts_are_checked():
    layout = jax.experimental.layout
    x = jnp.ones((2, 3))
    assert layout.with_layout_constraint(x, layout.Layout((0, 1))) is x
    with pytest.raises(ValueError, match="Length of major_to_minor"):
        layout.with_layout_constraint(x, layout.Layout((0,)))
    with pytest.raises(ValueError, match="must be of type `Layout`"):
        layout.with_layout_constraint(x, None)
    with pytest.raises(TypeError, match="layout argument"):
        layout.Format(3)
    with pytest.raises(ValueError, match="Sharding has to be concrete"):
        layout.Format(layout.Layout((0, 1)))


def test_the_compilation_cache_s_folder_is_an_option():
    before = jax.config.jax_compilation_cache_dir
    compilation_cache.set_cache_dir("/somewhere")
    assert jax.config.jax_compilation_cache_dir == "/somewhere"
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()
