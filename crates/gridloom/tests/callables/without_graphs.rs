//! Callables without graphs give the same results, one operation at a time.

use std::process::Command;

use gridloom::CallableOptions;
use gridloom::prelude::*;

use super::with_graphs;
use crate::support::{GraphKernels, Random, for_each_device};

const VARIABLE: &str = "GRIDLOOM_CALLABLE_GRAPHS";

#[test]
fn an_environment_variable_turns_graphs_off() {
    // Tests are named from below the crate on.
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    let probe = &format!("{module}::probe_of_the_environment");
    for (value, graphs) in [(Some("0"), false), (Some("1"), true), (None, true)] {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", probe, "--ignored"]).env_remove(VARIABLE);
        command.env("GRIDLOOM_EXPECT_GRAPHS", if graphs { "yes" } else { "no" });
        if let Some(value) = value {
            command.env(VARIABLE, value);
        }
        let output = command.output().expect("this program runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{VARIABLE}={value:?}: {said}");
    }
}

#[test]
#[ignore = "run by an_environment_variable_turns_graphs_off, with an environment of its own"]
fn probe_of_the_environment() {
    let expected = std::env::var("GRIDLOOM_EXPECT_GRAPHS").is_ok_and(|value| value == "yes");
    assert_eq!(CallableOptions::new().graphs, expected);
    let device = Device::cpu().expect("there is always a CPU");
    let work = Callable::new(&device, |_, (): ()| Ok(()));
    let stream = device.stream().expect("a CPU has streams");
    for _ in 0..3 {
        work.call(&stream, ()).expect("nothing can fail");
    }
    assert_eq!(work.stats().builds, if expected { 1 } else { 3 });
}

#[test]
fn results_are_the_same_with_graphs_and_without() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let both: Vec<_> = [true, false]
            .into_iter()
            .map(|graphs| {
                let (affine, mix, increase) =
                    (kernels.affine.clone(), kernels.mix.clone(), kernels.increase.clone());
                Callable::with_options(
                    device,
                    with_graphs().graphs(graphs),
                    move |g, (x, y, left, a): (Param<[i32]>, Param<[i32]>, Param<i32>, Scalar<i32>)| {
                        g.memset(&y, 3)?;
                        g.do_while(&left, |body| {
                            body.launch(&affine, per_element(&x), (&y, &x, x.len(), &a, 1))?;
                            body.switch_on(&left, 4, |number, case| {
                                case.repeat(number as u64, |r| {
                                    r.launch(&mix, per_element(&x), (&x, &y, x.len()))
                                })
                            })?;
                            body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))
                        })?
                        .max_passes(6)?;
                        g.memcpy(&x, &y)
                    },
                )
            })
            .collect();
        let mut random = Random::new(11);
        for _ in 0..10 {
            let (len, passes, a) = (1 + random.below(600), random.between(1, 8) as i32, random.i32());
            let start = random.i32s(len);
            let mut results = Vec::new();
            for callable in &both {
                let (x, y, left) = (kernels.buffer(&start)?, kernels.buffer(&start)?, kernels.value(passes)?);
                callable.call(&kernels.stream, (&x, &y, &left, a))?;
                results.push((x.to_vec()?, y.to_vec()?, left.to_vec()?));
            }
            assert!(results[0] == results[1], "{len} elements, {passes} passes, a = {a}");
        }
        assert_eq!((both[0].stats().builds, both[1].stats().builds), (1, 10));
        Ok(())
    });
}
