//! The three programs, captured: the same graphs and results as from explicit nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom::contract::{Contract, arg};
use gridloom::demo_kernels;
use gridloom::prelude::*;

use super::shape::shape;
use crate::support::{Bench, for_each_mode};

const ONE: fn() -> LaunchConfig = LaunchConfig::one;

/// Launches a graph twice, so that what a launch leaves behind would show.
fn run(bench: &Bench, graph: &Graph, conditional_mode: ConditionalMode) -> Result<Executable> {
    let options = InstantiateOptions::new().conditional_mode(conditional_mode);
    let executable = graph.instantiate_with(&options)?;
    for _ in 0..2 {
        executable.launch(&bench.stream)?;
        bench.stream.synchronize()?;
    }
    Ok(executable)
}

struct Heat {
    step: Kernel<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>,
    set_ends: Kernel<(PtrMut<f32>, Len<u32>, f32, f32)>,
    countdown: Kernel<(ConditionHandle, PtrMut<i32>)>,
    host: Buffer<f32>,
    start: Event,
    end: Event,
    finished: Arc<AtomicU32>,
}

impl Heat {
    const N: usize = 32;
    const PASSES: i32 = 50;

    fn new(bench: &Bench) -> Result<Self> {
        Ok(Heat {
            step: bench.kernel("heat_step")?,
            set_ends: bench.kernel_with("set_ends", Contract::new().at_least(arg(1), 1))?,
            countdown: bench.kernel("countdown")?,
            host: bench.device.alloc_host(Self::N)?,
            start: bench.device.event()?,
            end: bench.device.event()?,
            finished: Arc::default(),
        })
    }

    fn count(&self) -> impl FnMut() + Send + use<> {
        let finished = self.finished.clone();
        move || {
            finished.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The child graph is embedded empty and filled in place, since it works on memory of the graph
    /// around it.
    fn fill_child(&self, child: &Node, rod: &impl Memory<f32>) -> Result<()> {
        child.bodies()?[0].launch(&self.set_ends, ONE(), (rod, Self::N as u32, 100.0, 0.0))?;
        Ok(())
    }

    fn explicit(&self, device: &Device) -> Result<Graph> {
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let (now, next, left) = (graph.alloc(Self::N)?, graph.alloc(Self::N)?, graph.alloc::<i32>(1)?);
        let fills = [now.memset(&now, 0u8)?, next.memset(&next, 0u8)?, left.memset(&left, Self::PASSES)?];
        let child = graph.join(&fills)?.embed(&Graph::new(device))?;
        self.fill_child(&child, &now)?;
        let repeat = child.record(&self.start)?.while_loop(&again)?;
        repeat
            .body()
            .launch(&self.step, LaunchConfig::linear(Self::N), (&next, &now, Self::N as u32, 0.4))?
            .memcpy(&now, &next)?
            .launch(&self.countdown, ONE(), (&again, &left))?;
        repeat
            .wait(&self.start)?
            .record(&self.end)?
            .memcpy(&self.host, &now)?
            .callback(self.count())?
            .free(&now)?
            .free(&next)?
            .free(&left)?;
        Ok(graph)
    }

    fn captured(&self, device: &Device, stream: &Stream) -> Result<Graph> {
        stream.capture_scope(|capture| {
            let again = capture.condition(true)?;
            let forks = capture.fork(3)?;
            let (now, next) = (capture.alloc(Self::N)?, forks[0].alloc(Self::N)?);
            let left = forks[1].alloc::<i32>(1)?;
            capture.memset(&now, 0u8)?;
            forks[0].memset(&next, 0u8)?;
            forks[1].memset(&left, Self::PASSES)?;
            capture.join(&forks)?;
            capture.empty()?;
            let child = capture.embed(&Graph::new(device))?;
            self.fill_child(&child, &now)?;
            stream.record(&self.start)?;
            capture.while_loop(&again)?.fill(|body| {
                body.launch(&self.step, LaunchConfig::linear(Self::N), (&next, &now, Self::N as u32, 0.4))?;
                body.memcpy(&now, &next)?;
                body.launch(&self.countdown, ONE(), (&again, &left))?;
                Ok(())
            })?;
            capture.wait(&self.start)?;
            stream.record(&self.end)?;
            stream.memcpy(&self.host, &now)?;
            stream.callback(self.count())?;
            capture.free(&now)?;
            capture.free(&next)?;
            capture.free(&left)?;
            Ok(())
        })
    }
}

#[test]
fn heat_captured_is_heat_built_explicitly() {
    for_each_mode(|device, mode| {
        let bench = Bench::new(device, demo_kernels::HEAT)?;
        let heat = Heat::new(&bench)?;
        let (explicit, captured) = (heat.explicit(device)?, heat.captured(device, &bench.stream)?);
        assert_eq!(shape(&captured)?, shape(&explicit)?);
        run(&bench, &explicit, mode)?;
        let expected = heat.host.to_vec()?;
        assert!(expected[1] > 50.0 && expected[1] < 100.0, "the heat has spread: {expected:?}");
        heat.host.write(&[0.0; Heat::N])?;
        run(&bench, &captured, mode)?;
        assert_eq!(heat.host.to_vec()?, expected);
        assert_eq!(heat.finished.load(Ordering::Relaxed), 4);
        heat.end.elapsed_since(&heat.start)?;
        Ok(())
    });
}

struct Bisection {
    set_bracket: Kernel<(PtrMut<f64>, PtrMut<i32>, f64, f64, i32)>,
    evaluate: Kernel<(ConditionHandle, Ptr<f64>, f64)>,
    raise_low: Kernel<(PtrMut<f64>,)>,
    lower_high: Kernel<(PtrMut<f64>,)>,
    countdown: Kernel<(ConditionHandle, PtrMut<i32>)>,
    check: Kernel<(ConditionHandle, PtrMut<f64>, Ptr<f64>, f64, f64)>,
    newton: Kernel<(PtrMut<f64>, f64)>,
    host: Buffer<f64>,
}

impl Bisection {
    const TARGET: f64 = 2.0;
    const PASSES: i32 = 20;
    /// Tighter than 20 passes get, so that the Newton step is taken.
    const TOLERANCE: f64 = 1e-12;

    fn new(bench: &Bench) -> Result<Self> {
        let two_at = |index| Contract::new().holds(index, 2);
        Ok(Bisection {
            set_bracket: bench.kernel_with("set_bracket", two_at(0))?,
            evaluate: bench.kernel_with("evaluate", two_at(1))?,
            raise_low: bench.kernel_with("raise_low", two_at(0))?,
            lower_high: bench.kernel_with("lower_high", two_at(0))?,
            countdown: bench.kernel("countdown")?,
            check: bench.kernel_with("check", two_at(2))?,
            newton: bench.kernel("newton")?,
            host: bench.device.alloc_host(1)?,
        })
    }

    fn explicit(&self, device: &Device) -> Result<Graph> {
        let graph = Graph::new(device);
        let (again, right, refine) =
            (graph.condition(Some(1))?, graph.condition(None)?, graph.condition(None)?);
        let ends = graph.alloc::<f64>(2)?;
        let left = ends.alloc::<i32>(1)?;
        let root = left.alloc::<f64>(1)?;
        let repeat = root
            .launch(&self.set_bracket, ONE(), (&ends, &left, 0.0, 2.0, Self::PASSES))?
            .while_loop(&again)?;
        let side =
            repeat.body().launch(&self.evaluate, ONE(), (&right, &ends, Self::TARGET))?.if_else(&right)?;
        side.then_body().launch(&self.raise_low, ONE(), (&ends,))?;
        side.else_body().launch(&self.lower_high, ONE(), (&ends,))?;
        side.launch(&self.countdown, ONE(), (&again, &left))?;
        let polish = repeat
            .launch(&self.check, ONE(), (&refine, &root, &ends, Self::TARGET, Self::TOLERANCE))?
            .if_then(&refine)?;
        polish.body().launch(&self.newton, ONE(), (&root, Self::TARGET))?;
        polish.memcpy(&self.host, &root)?.free(&ends)?.free(&left)?.free(&root)?;
        Ok(graph)
    }

    fn captured(&self, stream: &Stream) -> Result<Graph> {
        stream.capture_scope(|capture| {
            let (again, right, refine) =
                (capture.condition(1)?, capture.condition(None)?, capture.condition(None)?);
            let (ends, left, root) = (capture.alloc(2)?, capture.alloc(1)?, capture.alloc(1)?);
            stream.launch(&self.set_bracket, ONE(), (&ends, &left, 0.0, 2.0, Self::PASSES))?;
            capture.while_loop(&again)?.fill(|body| {
                body.launch(&self.evaluate, ONE(), (&right, &ends, Self::TARGET))?;
                body.if_else(&right)?.fill(
                    |then| then.launch(&self.raise_low, ONE(), (&ends,)),
                    |otherwise| otherwise.launch(&self.lower_high, ONE(), (&ends,)),
                )?;
                body.launch(&self.countdown, ONE(), (&again, &left)).map(drop)
            })?;
            stream.launch(&self.check, ONE(), (&refine, &root, &ends, Self::TARGET, Self::TOLERANCE))?;
            let polish = capture.if_then(&refine)?;
            polish.fill(|polish| polish.launch(&self.newton, ONE(), (&root, Self::TARGET)).map(drop))?;
            stream.memcpy(&self.host, &root)?;
            capture.free(&ends)?;
            capture.free(&left)?;
            capture.free(&root)?;
            Ok(())
        })
    }
}

#[test]
fn bisection_captured_is_bisection_built_explicitly() {
    for_each_mode(|device, mode| {
        let bench = Bench::new(device, demo_kernels::BISECT)?;
        let bisection = Bisection::new(&bench)?;
        let (explicit, captured) = (bisection.explicit(device)?, bisection.captured(&bench.stream)?);
        assert_eq!(shape(&captured)?, shape(&explicit)?);
        run(&bench, &explicit, mode)?;
        let expected = bisection.host.to_vec()?;
        assert!((expected[0] - Bisection::TARGET.sqrt()).abs() <= 1e-11, "{expected:?}");
        bisection.host.write(&[0.0])?;
        run(&bench, &captured, mode)?;
        assert_eq!(bisection.host.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_switch_captured_is_the_switch_built_explicitly() {
    const NAMES: [&str; 3] = ["negate", "double_it", "square"];

    for_each_mode(|device, mode| {
        let bench = Bench::new(device, demo_kernels::SWITCH)?;
        let kernels =
            NAMES.iter().map(|name| bench.kernel::<(PtrMut<i32>,)>(name)).collect::<Result<Vec<_>>>()?;
        let host = device.alloc_host::<i32>(1)?;
        for (case, expected) in [(0u8, -42), (1, 84), (2, 1764), (3, 42)] {
            let explicit = Graph::new(device);
            let chosen = explicit.condition(Some(case.into()))?;
            let value = explicit.alloc::<i32>(1)?;
            let switch = value.memset(&value, 42i32)?.switch(&chosen, kernels.len())?;
            for (case, kernel) in kernels.iter().enumerate() {
                switch.body(case)?.launch(kernel, ONE(), (&value,))?;
            }
            switch.memcpy(&host, &value)?.free(&value)?;

            let captured = bench.stream.capture_scope(|capture| {
                let chosen = capture.condition(case)?;
                let value = capture.alloc::<i32>(1)?;
                capture.memset(&value, 42i32)?;
                capture
                    .switch(&chosen, kernels.len())?
                    .fill(|case, body| body.launch(&kernels[case], ONE(), (&value,)))?;
                capture.memcpy(&host, &value)?;
                capture.free(&value).map(drop)
            })?;
            assert_eq!(shape(&captured)?, shape(&explicit)?);
            for graph in [&explicit, &captured] {
                host.write(&[0])?;
                run(&bench, graph, mode)?;
                assert_eq!(host.to_vec()?, [expected], "case {case}");
            }
        }
        Ok(())
    });
}
