use gridloom::contract::{Axis, Contract, block};
use gridloom::prelude::*;

use crate::support::{Bench, for_each_mode};

const N: usize = 40;

/// A whole conjugate gradient solve as one graph with a loop; after at most N passes the solution
/// is exact but for rounding.
#[test]
fn conjugate_gradients_solve_a_system_inside_one_graph() {
    for_each_mode(|device, conditional_mode| {
        let bench = Bench::new(device, include_str!("gradient.ptx"))?;
        let apply = bench.kernel::<(PtrMut<f64>, Ptr<f64>, Len<u32>)>("apply_laplacian")?;
        let dot = bench.kernel_with::<(PtrMut<f64>, Ptr<f64>, Ptr<f64>, Len<u32>)>(
            "dot",
            Contract::new().holds(0, 1).at_most(block(Axis::X), 256),
        )?;
        let step_length = bench.kernel::<(PtrMut<f64>, Ptr<f64>, Ptr<f64>)>("step_length")?;
        let add_scaled = bench.kernel_with::<(PtrMut<f64>, Ptr<f64>, Ptr<f64>, f64, Len<u32>)>(
            "add_scaled",
            Contract::new().holds(2, 1),
        )?;
        let direction = bench.kernel_with::<(PtrMut<f64>, Ptr<f64>, Ptr<f64>, Ptr<f64>, Len<u32>)>(
            "direction",
            Contract::new().holds(2, 1).holds(3, 1),
        )?;
        let test =
            bench.kernel::<(ConditionHandle, Ptr<f64>, PtrMut<f64>, PtrMut<i32>, f64)>("test_residual")?;

        let solution: Vec<f64> = (0..N).map(|i| ((i * i) % 17) as f64 - 8.0).collect();
        let around = |i: usize| {
            let left = if i > 0 { solution[i - 1] } else { 0.0 };
            left + solution.get(i + 1).copied().unwrap_or(0.0)
        };
        let right_side: Vec<f64> = (0..N).map(|i| 2.0 * solution[i] - around(i)).collect();

        let (n, each, one, block) =
            (N as u32, LaunchConfig::linear(N), LaunchConfig::one(), LaunchConfig::new(1, 256));
        let x = device.alloc::<f64>(N)?;
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let [r, p, ap] = [graph.alloc::<f64>(N)?, graph.alloc::<f64>(N)?, graph.alloc::<f64>(N)?];
        let [rr, old_rr, pap, alpha] =
            [graph.alloc::<f64>(1)?, graph.alloc::<f64>(1)?, graph.alloc::<f64>(1)?, graph.alloc::<f64>(1)?];
        let left = graph.alloc::<i32>(1)?;
        let allocs = [&*r, &*p, &*ap, &*rr, &*old_rr, &*pap, &*alpha, &*left];
        let repeat = graph
            .join(allocs)?
            .memset(&x, 0u8)?
            .memset(&left, 2 * N as i32)?
            .memcpy(&r, &right_side)?
            .memcpy(&p, &r)?
            .launch(&dot, block, (&old_rr, &r, &r, n))?
            .while_loop(&again)?;
        repeat
            .body()
            .launch(&apply, each, (&ap, &p, n))?
            .launch(&dot, block, (&pap, &p, &ap, n))?
            .launch(&step_length, one, (&alpha, &old_rr, &pap))?
            .launch(&add_scaled, each, (&x, &p, &alpha, 1.0, n))?
            .launch(&add_scaled, each, (&r, &ap, &alpha, -1.0, n))?
            .launch(&dot, block, (&rr, &r, &r, n))?
            .launch(&direction, each, (&p, &r, &rr, &old_rr, n))?
            .launch(&test, one, (&again, &rr, &old_rr, &left, 1e-20))?;
        let mut last = (*repeat).clone();
        for alloc in [&r, &p, &ap, &rr, &old_rr, &pap, &alpha] {
            last = last.free(alloc)?;
        }
        last.free(&left)?;

        let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
        let executable = graph.instantiate_with(&options)?;
        executable.launch(&bench.stream)?;
        bench.stream.synchronize()?;
        for (i, (got, wanted)) in x.to_vec()?.iter().zip(&solution).enumerate() {
            assert!((got - wanted).abs() < 1e-8, "[{i}]: {got}, not {wanted}");
        }
        let passes = executable.passes(&repeat)?;
        assert!(passes > 1 && passes < 2 * N as u64, "{passes} passes");
        Ok(())
    });
}

#[test]
fn a_residual_is_the_difference_of_two_vectors() {
    for_each_mode(|device, _| {
        let bench = Bench::new(device, include_str!("gradient.ptx"))?;
        let r = bench.zeros::<f64>(3)?;
        let args = (&r, &bench.buffer(&[1.0, 2.0, 3.0])?, &bench.buffer(&[0.5, 4.0, 3.0])?, 3);
        bench.run::<(PtrMut<f64>, Ptr<f64>, Ptr<f64>, u32)>("residual", LaunchConfig::linear(3), args)?;
        assert_eq!(r.to_vec()?, [0.5, -2.0, 0.0]);
        Ok(())
    });
}
