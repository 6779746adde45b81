//! Warps, atomic operations, output and conditions.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use gridloom::prelude::*;
use gridloom::{Atomic, Out, SetCondition, block, host, kernel, thread, warp};

use crate::blocks::same_in_blocks;
use crate::support::{for_each_device, is_cpu};

#[test]
fn threads_of_a_warp_exchange_values() {
    #[kernel]
    fn shuffles(x: &[f64], out: Out<[f64; 5]>) {
        let own = x[thread::index()];
        let narrow = own as i16;
        let all = [
            warp::shuffle(own, 3),
            warp::shuffle_up(own, 2),
            warp::shuffle_down(own as f32, 5) as f64,
            warp::shuffle_xor(own, 9),
            warp::shuffle(narrow, (warp::lane() * 7) % 40) as f64,
        ];
        if let Some((_, out)) = out.mine() {
            *out = all;
        }
    }
    let x: Vec<f64> = (0..90).map(|i| (i * i) as f64 * 0.5 - 100.0).collect();
    same_in_blocks!(shuffles, x.clone(), [0.0f64; 5], 90, 2, 45);
    same_in_blocks!(shuffles, x, [0.0f64; 5], 64, 1, 64);
}

#[test]
fn threads_of_a_warp_vote_and_reduce() {
    #[kernel]
    fn votes(x: &[u32], out: Out<[u32; 8]>) {
        let own = x[thread::index()];
        let mut all = [
            warp::all(own > 2) as u32,
            warp::any(own > 90) as u32,
            warp::ballot(own % 3 == 0),
            warp::sum(own),
            warp::min(own),
            warp::max(own),
            warp::scan(own),
            warp::lane() + 100 * warp::index() + 10_000 * warp::size(),
        ];
        if warp::index() == 1 {
            all[0] += 10 * warp::sum(own);
        }
        if warp::any(own == 40) {
            all[1] += 10 * warp::max(own);
        }
        if let Some((_, out)) = out.mine() {
            *out = all;
        }
    }
    let x: Vec<u32> = (0..100).map(|i| (i * 61) % 97).collect();
    same_in_blocks!(votes, x.clone(), [0u32; 8], 100, 2, 50);
    same_in_blocks!(votes, x, [0u32; 8], 64, 1, 64);
}

#[test]
fn a_warp_function_that_some_threads_do_not_reach_is_refused() {
    #[kernel]
    fn branch(x: &[u32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            *out = warp::sum(x[i]);
        }
    }
    let error = branch::load(&Device::cpu().expect("a CPU")).expect_err("the last warp may be parted");
    assert!(error.to_string().contains("not all threads of a warp may come to `warp::sum`"), "{error}");
}

#[test]
fn threads_count_with_atomics() {
    #[kernel]
    fn histogram(x: &[u8], counts: &[Atomic<u32>]) {
        let own = block::shared_atomics::<u32, 4>(0);
        let mut i = thread::index();
        while i < x.len() {
            own[(x[i] % 4) as usize].block().fetch_add(1, Relaxed);
            i += block::threads() * gridloom::grid::size_x() as usize;
        }
        block::sync(());
        if thread::rank() < 4 {
            counts[thread::rank()].fetch_add(own[thread::rank()].load(Relaxed), Relaxed);
        }
    }
    let x: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    let mut expected = [0u32; 4];
    let counts = Atomic::of(&mut expected);
    host::run_blocks(3, 32, || histogram(&x, counts));
    assert_eq!(expected.iter().sum::<u32>(), 1000);
    for_each_device(|device| {
        let (x, counts) = (device.buffer_from(&x)?, device.buffer_from(&[0u32; 4])?);
        let stream = device.stream()?;
        stream.launch(&histogram::load(device)?, LaunchConfig::new(3, 32), (&x, &counts))?;
        assert_eq!(counts.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn every_atomic_operation() {
    #[kernel]
    fn operations(a: &[Atomic<i32>], b: &[Atomic<u64>], c: &[Atomic<f32>], out: Out<i64>) {
        if let Some((_, out)) = out.mine() {
            let mut sum = 0i64;
            sum += a[0].fetch_add(5, Relaxed) as i64;
            sum = sum * 7 + a[0].fetch_sub(9, AcqRel) as i64;
            sum = sum * 7 + a[0].fetch_min(-3, Acquire) as i64;
            sum = sum * 7 + a[0].fetch_max(20, Release) as i64;
            sum = sum * 7 + a[0].fetch_and(0x1c, SeqCst) as i64;
            sum = sum * 7 + a[0].fetch_or(3, Relaxed) as i64;
            sum = sum * 7 + a[0].fetch_xor(-1, Relaxed) as i64;
            sum = sum * 7 + a[0].swap(11, AcqRel) as i64;
            sum = sum * 7 + a[0].compare_and_swap(11, 12, SeqCst) as i64;
            sum = sum * 7 + a[0].compare_and_swap(11, 13, Relaxed) as i64;
            a[1].store(a[0].load(Acquire) + 1, Release);
            a[1].system().store(a[1].load(SeqCst) + 1, SeqCst);
            sum = sum * 7 + b[0].fetch_add(1 << 40, Relaxed) as i64;
            sum = sum * 7 + b[0].fetch_max(1 << 41, Relaxed) as i64 % 1000;
            sum = sum * 7 + b[0].swap(6, Relaxed) as i64 % 1000;
            sum = sum * 7 + (c[0].fetch_add(1.5, Relaxed) * 2.0) as i64;
            sum = sum * 7 + (c[0].fetch_sub(0.25, Relaxed) * 2.0) as i64;
            sum = sum * 7 + (c[0].swap(9.5, Relaxed) * 4.0) as i64;
            sum = sum * 7 + (c[0].compare_and_swap(9.5, 1.25, Relaxed) * 4.0) as i64;
            *out = sum;
        }
    }
    let (mut a, mut b, mut c, mut expected) = ([3, 4], [5u64], [2.0f32], [0]);
    host::run(1, 1, || {
        operations(Atomic::of(&mut a), Atomic::of(&mut b), Atomic::of(&mut c), Out::new(&mut expected))
    });
    assert_eq!((a, b, c), ([12, 14], [6], [1.25]));
    for_each_device(|device| {
        let (x, y) = (device.buffer_from(&[3, 4])?, device.buffer_from(&[5u64])?);
        let (z, out) = (device.buffer_from(&[2.0f32])?, device.buffer_from(&[0i64])?);
        let stream = device.stream()?;
        stream.launch(&operations::load(device)?, LaunchConfig::new(1, 1), (&x, &y, &z, &out))?;
        assert_eq!(out.to_vec()?, expected);
        assert_eq!((x.to_vec()?, y.to_vec()?, z.to_vec()?), (a.to_vec(), b.to_vec(), c.to_vec()));
        Ok(())
    });
}

#[test]
fn an_ordering_that_an_operation_has_not_is_refused() {
    #[kernel]
    fn wrong(a: &[Atomic<u32>]) {
        a[0].store(1, Acquire);
    }
    let error = wrong::load(&Device::cpu().expect("a CPU")).expect_err("refused");
    assert!(error.to_string().contains("a store does not acquire"), "{error}");
}

#[test]
fn atomic_memory_is_apart_from_other_memory() {
    #[kernel]
    fn both(x: &[u32], a: &[Atomic<u32>]) {
        a[0].store(x[0], Relaxed);
    }
    for_each_device(|device| {
        let memory = device.buffer_from(&[1u32; 4])?;
        let both = both::load(device)?;
        let error =
            device.stream()?.launch(&both, LaunchConfig::one(), (&memory, &memory)).expect_err("the same");
        assert_eq!(error.kind(), ErrorKind::ContractViolation);
        Ok(())
    });
}

#[test]
fn a_kernel_sets_the_condition_of_a_loop() {
    #[kernel]
    fn countdown(left: Out<u32>, again: SetCondition) {
        if let Some((_, left)) = left.mine() {
            *left -= 1;
            again.set((*left > 0) as u32);
        }
    }
    let (mut left, again) = ([3], AtomicU32::new(7));
    host::run(1, 1, || countdown(Out::new(&mut left), SetCondition::new(&again)));
    assert_eq!((left, again.into_inner()), ([2], 1));
    for_each_device(|device| {
        let countdown = countdown::load(device)?;
        let left = device.buffer_from(&[10u32])?;
        let graph = Graph::new(device);
        let again = graph.condition(true)?;
        let repeat = graph.while_loop(&again)?;
        repeat.body().launch(&countdown, LaunchConfig::one(), (&left, &again))?;
        graph.instantiate()?.launch(&device.stream()?)?;
        device.synchronize()?;
        assert_eq!(left.to_vec()?, [0]);
        Ok(())
    });
}

#[test]
fn a_kernel_prints() {
    #[allow(clippy::print_stdout, reason = "it is what is tested")]
    #[kernel]
    fn tell(x: &[f32]) {
        let (i, value) = (thread::index(), x[0] * 2.0);
        println!("thread {i} has {}, {} 100%: {{{:?}}}", value, -3i8, u64::MAX);
    }
    for_each_device(|device| {
        let x = device.buffer_from(&[1.25f32])?;
        let stream = device.stream()?;
        stream.launch(&tell::load(device)?, LaunchConfig::one(), (&x,))?;
        stream.synchronize()
    });
    // What the CPU device prints can be read.
    let (text, sink) = std::sync::mpsc::channel();
    let device = Device::cpu_with(CpuOptions::default().print(move |bytes: &[u8]| {
        text.send(bytes.to_vec()).expect("somebody listens");
    }))
    .expect("a CPU");
    assert!(is_cpu(&device));
    let x = device.buffer_from(&[1.25f32]).expect("memory");
    let stream = device.stream().expect("a stream");
    stream.launch(&tell::load(&device).expect("it loads"), LaunchConfig::one(), (&x,)).expect("launched");
    stream.synchronize().expect("it ends");
    let printed: Vec<u8> = sink.try_iter().flatten().collect();
    assert_eq!(String::from_utf8_lossy(&printed), "thread 0 has 2.5, -3 100%: {18446744073709551615}\n");
}
