//! Kernels that state the size of their blocks, and what threads own several elements of.

use gridloom::prelude::*;
use gridloom::{Out, block, host, kernel, thread};

use crate::support::for_each_device;

#[kernel(block(4, 2))]
fn of_eight(out: Out<u32>) {
    let mut tile = block::shared::<u32, 8>(0);
    if let Some(slot) = tile.mine() {
        *slot = thread::rank() as u32 + 100 * block::threads() as u32;
    }
    let tile = block::sync(tile);
    let sum = block::sum(tile[7 - thread::rank()]);
    if let Some((_, out)) = out.mine_2d(4) {
        *out = sum + tile[7 - thread::rank()];
    }
}

#[test]
fn the_stated_size_is_the_size_of_the_block() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0u32; 8])?;
        let stream = device.stream()?;
        stream.launch(&of_eight::load(device)?, LaunchConfig::new(1, (4, 2)), (&out,))?;
        let sum: u32 = (0..8).map(|rank| rank + 800).sum();
        let expected: Vec<u32> = (0..8).map(|rank| sum + 800 + 7 - rank).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_launch_with_another_block_is_refused() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0u32; 8])?;
        let kernel = of_eight::load(device)?;
        let (graph, stream) = (Graph::new(device), device.stream()?);
        for block in [(8, 1), (2, 4), (4, 1), (4, 3)] {
            let error = stream.launch(&kernel, LaunchConfig::new(1, block), (&out,)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(graph.launch(&kernel, LaunchConfig::new(1, block), (&out,)).is_err());
        }
        let node = graph.launch(&kernel, LaunchConfig::new(1, (4, 2)), (&out,))?;
        assert!(node.set_config(LaunchConfig::new(1, (8, 1))).is_err());
        Ok(())
    });
}

#[kernel(block(N, 2))]
fn generic_size<const N: usize>(out: Out<u32>) {
    if let Some(((x, _), out)) = out.mine_2d(N) {
        *out = (x + block::threads()) as u32;
    }
}

#[test]
fn a_size_can_be_a_constant_parameter() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0u32; 6])?;
        let stream = device.stream()?;
        stream.launch(&generic_size::load::<3>(device)?, LaunchConfig::new(1, (3, 2)), (&out,))?;
        assert_eq!(out.to_vec()?, [6, 7, 8, 6, 7, 8]);
        Ok(())
    });
}

const MANY: u32 = 2048;

#[kernel(block(MANY))]
fn too_large(out: Out<u32>) {
    if let Some((_, out)) = out.mine() {
        *out = 1;
    }
}

#[kernel(block(2, MANY - MANY))]
fn empty(out: Out<u32>) {
    if let Some((_, out)) = out.mine() {
        *out = 1;
    }
}

#[test]
fn a_size_that_no_device_has_is_refused() {
    for_each_device(|device| {
        for error in [too_large::load(device).err(), empty::load(device).err()] {
            let text = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(text.contains("no device has blocks of"), "{text}");
        }
        Ok(())
    });
}

#[kernel]
fn in_columns(width: usize, rows: usize, out: Out<u32>) {
    for (number, ((x, y), out)) in out.each_mine_2d(width, rows).enumerate() {
        *out += (1000 * y + 10 * x + number) as u32 + 1;
    }
}

/// Every element comes once, whatever the shape of the launch.
#[test]
fn threads_own_several_elements_one_below_the_other() {
    for (len, width, rows, block) in
        [(24, 4, 3, (4, 2)), (23, 4, 3, (8, 4)), (7, 7, 1, (8, 2)), (9, 2, 5, (2, 1)), (5, 8, 2, (8, 2))]
    {
        let mut on_host = vec![0u32; len];
        host::run(1, block, || in_columns(width, rows, Out::new(&mut on_host)));
        let expected: Vec<u32> = (0..len)
            .map(|i| (i % width, i / width))
            .map(|(x, y)| {
                let is_reached = x < block.0 as usize && y / rows < block.1 as usize;
                if is_reached { (1000 * y + 10 * x + y % rows) as u32 + 1 } else { 0 }
            })
            .collect();
        assert_eq!(on_host, expected);
        for_each_device(|device| {
            let out = device.buffer_from(&vec![0u32; len])?;
            let stream = device.stream()?;
            stream.launch(&in_columns::load(device)?, LaunchConfig::new(1, block), (width, rows, &out))?;
            assert_eq!(out.to_vec()?, expected, "{len} elements in rows of {width}");
            Ok(())
        });
    }
}

/// Rows so long that the index of the second element wraps around.
#[test]
fn columns_of_huge_rows_end_with_the_memory() {
    for width in [usize::MAX, usize::MAX / 2, usize::MAX / 2 + 1, 1 << 62] {
        for_each_device(|device| {
            let out = device.buffer_from(&[0u32; 4])?;
            let stream = device.stream()?;
            let args = (width, 8, &out);
            stream.launch(&in_columns::load(device)?, LaunchConfig::new(1, (2, 4)), args)?;
            assert_eq!(out.to_vec()?, [1, 11, 0, 0]);
            Ok(())
        });
    }
}

#[kernel]
fn sorted<const N: usize>(keys: &[u32], out: Out<u32>) {
    let mut all =
        block::shared_from_fn::<u32, N>(|i| if i < keys.len() { keys[i] } else { u32::MAX }).pairs();
    let mut k = 2;
    while k <= N.next_power_of_two() {
        let mut j = k / 2;
        while j > 0 {
            all.exchange(j, |i, a, b| if (a > b) == (i & k == 0) { (b, a) } else { (a, b) });
            j /= 2;
        }
        k *= 2;
    }
    let all = block::sync(all);
    if let Some(mut out) = out.tile(N) {
        for (i, slot) in out.each_mine() {
            *slot = all[i];
        }
    }
}

#[test]
fn pairs_are_exchanged_as_on_the_host() {
    let keys: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
    let mut expected = keys.clone();
    expected.sort_unstable();
    for threads in [1, 7, 32, 64] {
        let mut on_host = vec![0; 64];
        let out = host::Memory::new(&mut on_host);
        host::run_blocks(1, threads, || sorted::<64>(&keys, out.out()));
        assert_eq!(on_host, expected);
        for_each_device(|device| {
            let (keys, out) = (device.buffer_from(&keys)?, device.buffer_from(&[0u32; 64])?);
            let stream = device.stream()?;
            let kernel = sorted::load::<64>(device)?;
            stream.launch(&kernel, LaunchConfig::new(1, threads), (&keys, &out))?;
            assert_eq!(out.to_vec()?, expected, "{threads} threads");
            Ok(())
        });
    }
}

const EXCHANGE_LINE: u32 = line!() + 7;

#[kernel]
fn exchanged(distance: usize, out: Out<u32>) {
    let len = out.len();
    if let Some(all) = out.tile(len) {
        let mut all = all.pairs();
        all.exchange(distance, |i, a, b| (b + i as u32, a));
        let _ = block::sync(all);
    }
}

#[test]
fn elements_without_a_partner_stay() {
    for (len, distance) in [(5usize, 1usize), (6, 4), (7, 2), (3, 8), (4, 1 << 63), (1, 1usize)] {
        let given: Vec<u32> = (0..len as u32).map(|i| 100 * i).collect();
        let mut expected = given.clone();
        for i in 0..len {
            if i & distance == 0 && i.checked_add(distance).is_some_and(|high| high < len) {
                (expected[i], expected[i + distance]) = (given[i + distance] + i as u32, given[i]);
            }
        }
        for_each_device(|device| {
            let out = device.buffer_from(&given)?;
            let stream = device.stream()?;
            stream.launch(&exchanged::load(device)?, LaunchConfig::new(1, 3), (distance, &out))?;
            assert_eq!(out.to_vec()?, expected, "{len} elements, {distance} apart");
            Ok(())
        });
    }
}

#[test]
fn a_distance_that_is_no_power_of_two_fails_the_launch() {
    let device = Device::cpu().expect("there is a CPU");
    for distance in [0, 3, 6, usize::MAX] {
        let out = device.buffer_from(&[0u32; 16]).expect("memory");
        let stream = device.stream().expect("a stream");
        let kernel = exchanged::load(&device).expect("it loads");
        let ended = stream
            .launch(&kernel, LaunchConfig::new(1, 4), (distance, &out))
            .and_then(|()| stream.synchronize());
        let text = ended.expect_err("it fails").to_string();
        assert!(text.contains("the distance of a pair is a power of two"), "{text}");
        assert!(text.contains(&format!("block_sizes.rs:{}", EXCHANGE_LINE)), "{text}");
    }
}

#[kernel]
fn each_its_distance(out: Out<u32>) {
    let mut all = block::shared::<u32, 64>(0).pairs();
    all.exchange(1 << thread::x(), |_, a, b| (b, a));
    let all = block::sync(all);
    if let Some((i, out)) = out.mine() {
        *out = all[i];
    }
}

#[test]
fn a_distance_of_each_thread_is_refused() {
    for_each_device(|device| {
        let text = each_its_distance::load(device).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains("the distance of `exchange` must be the same"), "{text}");
        Ok(())
    });
}

#[kernel(fmad)]
fn fused(x: &[f32], out: Out<[f32; 4]>) {
    if let Some((_, out)) = out.mine() {
        let (a, b, c) = (x[0], x[1], x[2]);
        *out = [a * b + c, c + a * b, a * b - c, c - a * b];
    }
}

#[kernel]
fn rounded(x: &[f32], out: Out<[f32; 4]>) {
    if let Some((_, out)) = out.mine() {
        let (a, b, c) = (x[0], x[1], x[2]);
        *out = [a * b + c, c + a * b, a * b - c, c - a * b];
    }
}

#[test]
fn products_are_fused_only_in_kernels_that_ask_for_it() {
    let (a, b) = (1.0f32 + 2f32.powi(-13), 1.0f32 - 2f32.powi(-13));
    let c = -1.0f32;
    for_each_device(|device| {
        let (x, out) = (device.buffer_from(&[a, b, c])?, device.buffer_from(&[[0.0f32; 4]])?);
        let stream = device.stream()?;
        stream.launch(&fused::load(device)?, LaunchConfig::one(), (&x, &out))?;
        let sum = a.mul_add(b, c);
        assert_ne!(sum, a * b + c);
        assert_eq!(out.to_vec()?, [[sum, sum, a.mul_add(b, -c), (-a).mul_add(b, c)]]);
        stream.launch(&rounded::load(device)?, LaunchConfig::one(), (&x, &out))?;
        assert_eq!(out.to_vec()?, [[a * b + c, a * b + c, a * b - c, c - a * b]]);
        Ok(())
    });
}
