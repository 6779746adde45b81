//! `memory_limit` of the CPU device includes the memory of running kernels.

use gridloom::prelude::*;

use crate::support::{Bench, for_each_engine, refused};

const LIMIT: u64 = 16 << 20;

/// A device that may use so many bytes, with kernels that take much memory: `local` a quarter of a
/// megabyte for each thread, `registers` 40,000 registers, `nested` calls itself as often as its
/// argument says, with 200 registers and 512 bytes each time, `heap` allocates, and `plain` takes
/// next to nothing.
fn limited(options: CpuOptions, limit: u64) -> Result<Bench> {
    let device = Device::cpu_with(options.memory_limit(limit))?;
    let registers: String = (0..40_000).map(|i| format!("mov.u32 %r{i}, {i};\n")).collect();
    let sum: String = (1..40_000).map(|i| format!("add.u32 %r0, %r0, %r{i};\n")).collect();
    let ptx = format!(
        ".version 8.0
        .target sm_70
        .address_size 64
        .visible .entry plain(.param .u64 out)
        {{
            .reg .b32 %r<5>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %ntid.x;
            mad.lo.u32 %r4, %r2, %r3, %r1;
            mul.wide.u32 %rd2, %r4, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r4;
            ret;
        }}
        .visible .entry local(.param .u64 out)
        {{
            .local .align 8 .b8 memory[262144];
            .reg .b32 %r<3>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4;
            mov.u64 %rd3, memory;
            add.u64 %rd3, %rd3, %rd2;
            st.local.u32 [%rd3], %r1;
            ld.local.u32 %r2, [%rd3];
            add.u64 %rd4, %rd1, %rd2;
            st.global.u32 [%rd4], %r2;
            ret;
        }}
        .visible .entry registers(.param .u64 out)
        {{
            .reg .b32 %r<40000>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            {registers}
            {sum}
            st.global.u32 [%rd1], %r0;
            ret;
        }}
        .func (.param .b32 result) deep(.param .b32 left)
        {{
            .local .align 8 .b8 memory[512];
            .reg .b32 %r<200>;
            .reg .pred %p<2>;
            ld.param.u32 %r1, [left];
            mov.u32 %r2, 0;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra done;
            sub.u32 %r3, %r1, 1;
            {{
                .param .b32 argument;
                .param .b32 answer;
                st.param.b32 [argument], %r3;
                call.uni (answer), deep, (argument);
                ld.param.b32 %r2, [answer];
            }}
            add.u32 %r2, %r2, 1;
        done:
            st.param.b32 [result], %r2;
            ret;
        }}
        .visible .entry nested(.param .u64 out, .param .u32 depth)
        {{
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            ld.param.u32 %r1, [depth];
            {{
                .param .b32 argument;
                .param .b32 answer;
                st.param.b32 [argument], %r1;
                call.uni (answer), deep, (argument);
                ld.param.b32 %r2, [answer];
            }}
            mov.u32 %r3, %tid.x;
            mul.wide.u32 %rd2, %r3, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r2;
            ret;
        }}
        .extern .func (.param .b64 result) malloc(.param .b64 bytes);
        .visible .entry heap(.param .u64 out, .param .u64 bytes)
        {{
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out];
            ld.param.u64 %rd2, [bytes];
            {{
                .param .b64 argument;
                .param .b64 answer;
                st.param.b64 [argument], %rd2;
                call.uni (answer), malloc, (argument);
                ld.param.b64 %rd3, [answer];
            }}
            st.global.u64 [%rd1], %rd3;
            ret;
        }}"
    );
    Bench::new(&device, &ptx)
}

/// Asserts that the device works, and has as much memory as before.
fn is_as_before(bench: &Bench, used: u64) -> Result<()> {
    let out = bench.zeros::<u32>(256)?;
    bench.run::<(PtrMut<u32>,)>("plain", LaunchConfig::new(4, 64), (&out,))?;
    assert_eq!(out.to_vec()?, (0..256).collect::<Vec<u32>>());
    drop(out);
    assert_eq!(bench.device.memory_use()?.0, used);
    Ok(())
}

#[test]
fn local_memory_counts() {
    for_each_engine(|options| {
        let bench = limited(options, LIMIT)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u32>(1024)?;
        let launch = bench.run::<(PtrMut<u32>,)>("local", LaunchConfig::new(1, 1024), (&out,));
        refused(launch, ErrorKind::OutOfMemory, &["local", "16777216", "memory limit"]);
        // One warp has room.
        bench.run::<(PtrMut<u32>,)>("local", LaunchConfig::new(1, 4), (&out,))?;
        assert_eq!(out.to_vec()?[..5], [0, 1, 2, 3, 0]);
        drop(out);
        is_as_before(&bench, used)
    });
}

#[test]
fn registers_count() {
    for_each_engine(|options| {
        let bench = limited(options, LIMIT)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u32>(1)?;
        let launch = bench.run::<(PtrMut<u32>,)>("registers", LaunchConfig::new(1, 1024), (&out,));
        refused(launch, ErrorKind::OutOfMemory, &["registers", "memory limit"]);
        drop(out);
        is_as_before(&bench, used)
    });
}

#[test]
fn shared_memory_counts() {
    for_each_engine(|options| {
        let bench = limited(options, 150 << 10)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u32>(32)?;
        let config = LaunchConfig::new(1, 32).shared(200 << 10);
        let launch = bench.run::<(PtrMut<u32>,)>("plain", config, (&out,));
        refused(launch, ErrorKind::OutOfMemory, &["plain", "shared"]);
        drop(out);
        is_as_before(&bench, used)
    });
}

#[test]
fn the_blocks_of_a_cooperative_launch_count_all_at_once() {
    for_each_engine(|options| {
        let bench = limited(options, LIMIT)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u32>(1 << 20)?;
        let config = LaunchConfig::new(1024, 1024);
        let launch = bench.run::<(PtrMut<u32>,)>("plain", config.cooperative(), (&out,));
        refused(launch, ErrorKind::OutOfMemory, &["plain", "1024 blocks"]);
        bench.run::<(PtrMut<u32>,)>("plain", config, (&out,))?;
        assert_eq!(out.to_vec()?[(1 << 20) - 1], (1 << 20) - 1);
        drop(out);
        is_as_before(&bench, used)
    });
}

#[test]
fn blocks_run_one_at_a_time_where_there_is_room_for_one() {
    for_each_engine(|options| {
        // One block takes a warp, which is 8 MiB and a little.
        let bench = limited(options, 12 << 20)?;
        let out = bench.zeros::<u32>(8)?;
        bench.run::<(PtrMut<u32>,)>("local", LaunchConfig::new(20, 8), (&out,))?;
        assert_eq!(out.to_vec()?, (0..8).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn registers_and_stacks_of_nested_calls_count() {
    for_each_engine(|options| {
        let bench = limited(options, 4 << 20)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u32>(1024)?;
        bench.run::<(PtrMut<u32>, u32)>("nested", LaunchConfig::new(1, 32), (&out, 10))?;
        assert_eq!(out.to_vec()?[..33].iter().sum::<u32>(), 320);
        let launch = bench.run::<(PtrMut<u32>, u32)>("nested", LaunchConfig::new(1, 1024), (&out, 100));
        refused(launch, ErrorKind::OutOfMemory, &["nested", "calls", "memory limit"]);
        drop(out);
        is_as_before(&bench, used)
    });
}

#[test]
fn what_kernels_allocate_counts() {
    for_each_engine(|options| {
        let bench = limited(options, 1 << 20)?;
        let used = bench.device.memory_use()?.0;
        let out = bench.zeros::<u64>(1)?;
        bench.run::<(PtrMut<u64>, u64)>("heap", LaunchConfig::one(), (&out, 2 << 20))?;
        assert_eq!(out.to_vec()?, [0], "there is not so much");
        bench.run::<(PtrMut<u64>, u64)>("heap", LaunchConfig::one(), (&out, 4096))?;
        assert_ne!(out.to_vec()?, [0]);
        drop(out);
        is_as_before(&bench, used + 4096)
    });
}

#[test]
fn a_launch_inside_a_graph_names_its_node() {
    for_each_engine(|options| {
        let bench = limited(options, LIMIT)?;
        let out = bench.zeros::<u32>(1024)?;
        let graph = Graph::new(&bench.device);
        let local = bench.kernel::<(PtrMut<u32>,)>("local")?;
        graph.launch(&local, LaunchConfig::new(1, 1024), (&out,))?.named("too much")?;
        graph.instantiate()?.launch(&bench.stream)?;
        refused(bench.stream.synchronize(), ErrorKind::OutOfMemory, &["too much", "local", "memory limit"]);
        Ok(())
    });
}
