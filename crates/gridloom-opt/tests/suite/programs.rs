//! Block programs and batches whose results reveal the order of their steps.

use gridloom_opt::rewrite::{
    BatchGroup, LoopTest, Looping, Prefix, ProgramStep, Rewritten, Role, batch, block_program, prefixed,
};

use crate::common::{buffer, devices, launch_rewritten, read, source};

const LIMIT: u32 = 32_764;

const KERNELS: &str = include_str!("kernels.ptx");

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn step(name: &str, threads: u32) -> ProgramStep {
    ProgramStep { kernel: source(KERNELS, name), grid: [1; 3], block: [threads, 1, 1] }
}

fn steps(list: &[(&str, u32)]) -> Vec<ProgramStep> {
    let module = std::sync::Arc::new(gridloom_ptx::parse(KERNELS).unwrap());
    list.iter()
        .map(|&(name, threads)| ProgramStep {
            kernel: gridloom_opt::rewrite::KernelSource::new(module.clone(), name).unwrap(),
            grid: [1; 3],
            block: [threads, 1, 1],
        })
        .collect()
}

fn set(rewritten: &mut Rewritten, at: u32, value: u64) {
    rewritten.header[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn each_step_sees_what_the_step_before_it_wrote_elsewhere_in_the_block() {
    for device in devices() {
        for count in [1, 2, 5, 300] {
            let n = 96u32;
            let program = block_program(&steps(&vec![("neighbour", n); count]), None, LIMIT).unwrap();
            let data = [
                buffer(&device, &words(&(0..n).collect::<Vec<_>>())),
                buffer(&device, &words(&vec![0; n as usize])),
            ];
            let mut expected: Vec<u32> = (0..n).collect();
            let mut slices = Vec::new();
            for index in 0..count {
                let (from, to) = (&data[index % 2], &data[(index + 1) % 2]);
                let mut slice = from.address().to_le_bytes().to_vec();
                slice.extend(to.address().to_le_bytes());
                slice.extend((index as u32).to_le_bytes());
                slices.push(slice);
                expected = (0..n as usize)
                    .map(|i| expected[(i + 1) % n as usize].wrapping_mul(3).wrapping_add(index as u32))
                    .collect();
            }
            launch_rewritten(&device, &program, 0, &slices).unwrap();
            assert_eq!(numbers(&read(&device, &data[count % 2])), expected, "{count} steps");
        }
    }
}

#[test]
fn steps_with_fewer_threads_have_barriers_of_their_own_size() {
    for device in devices() {
        // `reverse` turns its threads' words around through shared memory, behind a barrier.
        let program =
            block_program(&steps(&[("reverse", 64), ("reverse", 256), ("reverse", 64)]), None, LIMIT)
                .unwrap();
        let data = buffer(&device, &words(&(0..256).collect::<Vec<_>>()));
        let slice = data.address().to_le_bytes().to_vec();
        launch_rewritten(&device, &program, 0, &[slice.clone(), slice.clone(), slice]).unwrap();
        let mut expected: Vec<u32> = (0..256).collect();
        expected[..64].reverse();
        expected.reverse();
        expected[..64].reverse();
        assert_eq!(numbers(&read(&device, &data)), expected);
    }
}

#[test]
fn a_step_of_part_of_a_warp_that_meets_is_refused() {
    let error = block_program(&steps(&[("reverse", 40), ("reverse", 64)]), None, LIMIT).unwrap_err();
    assert!(error.contains("no whole number of warps"), "{error}");
}

#[test]
fn a_loop_over_a_value_in_memory_runs_until_it_is_zero() {
    for device in devices() {
        for (test_first, start, limit, passes) in [
            (true, 5u32, u64::MAX, 5u64),
            (true, 0, u64::MAX, 0),
            (false, 1, u64::MAX, 1),
            (true, 9, 4, 4),
            (false, 9, 0, 0),
        ] {
            let looping = Looping { test: LoopTest::Value, test_first };
            let mut program =
                block_program(&steps(&[("increase", 32), ("decrement", 1)]), Some(looping), LIMIT).unwrap();
            let left = buffer(&device, &words(&[start]));
            let sum = buffer(&device, &words(&[0; 32]));
            let counted = buffer(&device, &[0xff; 8]);
            set(&mut program, Looping::VALUE, left.address());
            set(&mut program, Looping::LIMIT, limit);
            set(&mut program, Looping::PASSES, counted.address());
            let slices = [sum.address().to_le_bytes().to_vec(), left.address().to_le_bytes().to_vec()];
            launch_rewritten(&device, &program, 0, &slices).unwrap();
            assert_eq!(read(&device, &counted), passes.to_le_bytes());
            assert_eq!(numbers(&read(&device, &sum)), vec![passes as u32; 32]);
            assert_eq!(numbers(&read(&device, &left)), [start - passes as u32]);
        }
    }
}

#[test]
fn a_loop_over_a_condition_runs_until_a_kernel_sets_it_to_zero() {
    for device in devices() {
        for (initial, start, passes) in [(1u32, 6u32, 6u32), (0, 6, 0)] {
            let looping = Looping { test: LoopTest::Condition(0), test_first: true };
            let mut program =
                block_program(&steps(&[("increase", 64), ("countdown", 1)]), Some(looping), LIMIT).unwrap();
            let (left, sum) = (buffer(&device, &words(&[start])), buffer(&device, &words(&[0; 64])));
            set(&mut program, Looping::LIMIT, u64::MAX);
            program.header[Looping::INITIAL as usize..][..4].copy_from_slice(&initial.to_le_bytes());
            let mut countdown = 0u64.to_le_bytes().to_vec();
            countdown.extend(left.address().to_le_bytes());
            launch_rewritten(&device, &program, 0, &[sum.address().to_le_bytes().to_vec(), countdown])
                .unwrap();
            assert_eq!(numbers(&read(&device, &sum)), vec![passes; 64]);
        }
    }
}

#[test]
fn a_batch_of_grids_of_different_shapes_gives_each_its_own_block_index() {
    for device in devices() {
        let grids = vec![[3, 2, 1], [1, 1, 1], [2, 2, 3], [7, 1, 1], [1, 5, 1]];
        let group = BatchGroup { kernel: source(KERNELS, "shape"), grids: grids.clone() };
        let other = BatchGroup { kernel: source(KERNELS, "increase"), grids: vec![[1, 1, 1]; 2] };
        let program = batch(&[other, group], [32, 1, 1], LIMIT).unwrap();
        assert_eq!(program.blocks, 2 + 6 + 1 + 12 + 7 + 5);
        let sums: Vec<_> = (0..2).map(|_| buffer(&device, &words(&[5; 32]))).collect();
        let outs: Vec<_> = grids
            .iter()
            .map(|grid| buffer(&device, &words(&vec![0; (grid[0] * grid[1] * grid[2] * 4) as usize])))
            .collect();
        let slices: Vec<Vec<u8>> =
            sums.iter().chain(&outs).map(|memory| memory.address().to_le_bytes().to_vec()).collect();
        launch_rewritten(&device, &program, 0, &slices).unwrap();
        assert!(sums.iter().all(|sum| numbers(&read(&device, sum)) == [6; 32]));
        for (grid, out) in grids.iter().zip(&outs) {
            let mut expected = Vec::new();
            for z in 0..grid[2] {
                for y in 0..grid[1] {
                    for x in 0..grid[0] {
                        expected.extend([x | y << 8 | z << 16, grid[0], grid[1], grid[2]]);
                    }
                }
            }
            assert_eq!(numbers(&read(&device, out)), expected, "{grid:?}");
        }
    }
}

#[test]
fn a_kernel_that_may_leave_others_at_a_barrier_can_be_batched_but_is_no_step() {
    let kernel = source(KERNELS, "early_out");
    assert!(kernel.obstacle(Role::Batched).is_none());
    assert!(kernel.obstacle(Role::Step).unwrap().contains("may return while others"));
    assert!(block_program(&[step("early_out", 32)], None, LIMIT).unwrap_err().contains("early_out"));
}

#[test]
fn what_cannot_be_moved_says_why() {
    for (name, role, reason) in [
        ("grid_number", Role::Batched, "%gridid"),
        ("timed", Role::Step, "%clock64"),
        ("traps", Role::Batched, "may stop the launch"),
        ("bumps", Role::Prefixed, "a variable of its module"),
        ("arrives", Role::Step, "without waiting"),
        ("waits_itself", Role::Prefixed, "griddepcontrol"),
        ("pointers", Role::Batched, "through pointers"),
        ("prints", Role::Batched, "prints"),
    ] {
        let kernel = source(KERNELS, name);
        let found = kernel.obstacle(role).unwrap_or_else(|| panic!("{name} has no obstacle"));
        assert!(found.contains(reason), "{name}: {found}");
    }
}

#[test]
fn the_name_of_a_kernel_names_those_that_it_is_made_of() {
    let name = |names: &[(&str, u32)]| block_program(&steps(names), None, LIMIT).unwrap().name;
    assert_eq!(name(&[("increase", 32), ("increase", 32)]), "gridloom_fused_increase");
    assert_eq!(name(&[("read_only", 32), ("increase", 32)]), "gridloom_fused_read_only_increase");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let error = block_program(&steps(&vec![("increase", 32); 600]), None, 4096).unwrap_err();
    assert!(error.contains("4096 bytes"), "{error}");
}

#[test]
fn loads_through_the_read_only_cache_become_plain_in_steps() {
    let program = block_program(&steps(&[("read_only", 32), ("increase", 32)]), None, LIMIT).unwrap();
    assert!(!program.text().contains(".nc"), "{}", program.text());
    let batched = batch(
        &[BatchGroup { kernel: source(KERNELS, "read_only"), grids: vec![[1, 1, 1]; 2] }],
        [32, 1, 1],
        LIMIT,
    );
    assert!(batched.unwrap().text().contains(".nc"));
}

#[test]
fn a_kernel_waits_for_the_one_before_it_after_its_arguments_and_before_memory_and_branches() {
    let text = "
        .version 7.8 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 data, .param .u32 n) {
            .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<3>;
            ld.param.u64 %d0, [data]; ld.param.u32 %r0, [n];
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
            mad.lo.s32 %r4, %r1, %r2, %r3; setp.ge.u32 %p, %r4, %r0;
            @%p bra $END;
            mul.wide.u32 %d1, %r4, 4; add.u64 %d2, %d0, %d1; st.global.u32 [%d2], %r4;
            $END: ret;
        }";
    let (trigger, wait) = ("griddepcontrol.launch_dependents", "griddepcontrol.wait");
    let order = |late_wait: bool, text: &str| -> Vec<String> {
        let prefix = Prefix { trigger: true, wait: true, late_wait, ..Prefix::default() };
        let module = prefixed(&source(text, "k"), &prefix).unwrap().to_string();
        let words = [trigger, wait, "ld.param", "setp", "bra", "mul.wide", "%clock", "st.global"];
        let line = |line: &str| words.into_iter().find(|word| line.contains(word)).map(str::to_owned);
        module.lines().filter_map(line).collect()
    };
    let rest = ["bra", "mul.wide", "st.global"];
    let computed = ["ld.param", "ld.param", "setp"];
    assert_eq!(order(false, text), [&[trigger, wait], &computed[..], &rest].concat());
    assert_eq!(order(true, text), [&[trigger], &computed[..], &[wait], &rest].concat());
    // A clock tells when it was read, and nothing after a label may run twice.
    let clock = text.replace("mov.u32 %r2, %ntid.x", "mov.u32 %r2, %clock");
    assert_eq!(order(true, &clock)[..4], [trigger, "ld.param", "ld.param", wait]);
    let again = text.replace("ld.param.u64 %d0", "$AGAIN: ld.param.u64 %d0");
    assert_eq!(order(true, &again)[..2], [trigger, wait]);
}
