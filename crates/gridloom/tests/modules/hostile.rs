//! Modules that ask for too much or are very large. Loading them and looking up their kernels
//! returns a kernel or an error, quickly and with bounded memory.

use std::fmt::Write;

use gridloom::prelude::*;

use crate::support::for_each_engine;

const HEADER: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n";
/// What a module may ask of the device here, so that asking for more is refused and not tried.
const MEMORY: u64 = 256 << 20;

/// Loads a text and gets every kernel of it ready. How many there were.
fn prepare(device: &Device, text: &str) -> usize {
    let Ok(module) = device.load_ptx(text) else { return 0 };
    let kernels = module.kernel_names().into_iter().filter_map(|name| module.untyped_kernel(&name).ok());
    kernels.filter(|kernel| !kernel.info().is_empty()).count()
}

fn kernel(body: &str) -> String {
    format!(
        "{HEADER}.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<8>;\n.reg .pred %p<4>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n{body}\nret;\n}}\n"
    )
}

/// Returns the error of a text whose kernel `k` must not be had.
fn refusal(options: gridloom::CpuOptions, text: &str) -> Result<String> {
    let device = Device::cpu_with(options.memory_limit(MEMORY))?;
    let error = match device.load_ptx(text) {
        Err(error) => error,
        Ok(module) => match module.untyped_kernel("k") {
            Err(error) => error,
            Ok(kernel) => panic!("not refused: {kernel:?}"),
        },
    };
    Ok(error.to_string())
}

#[test]
fn what_asks_for_too_much_is_refused_by_name() {
    let many_params = (0..5000).map(|i| format!(".param .u64 p{i}")).collect::<Vec<_>>().join(", ");
    let cases = [
        (kernel(".reg .b32 %x<4000000000>;"), "registers"),
        (kernel(".local .b8 big[1099511627776];"), "big"),
        (kernel(".shared .b8 big[1099511627776];\nmov.u32 %r0, big;"), "shared memory"),
        (format!("{HEADER}.global .b8 big[1099511627776];\n{}", &kernel("")[HEADER.len()..]), "big"),
        (format!("{HEADER}.global .b8 big[99999999999999999999];\n"), "99999999999999999999"),
        (format!("{HEADER}.visible .entry k(.param .b8 big[1099511627776])\n{{\nret;\n}}\n"), "parameters"),
        (format!("{HEADER}.visible .entry k({many_params})\n{{\nret;\n}}\n"), "parameters"),
    ];
    for_each_engine(|options| {
        for (text, culprit) in &cases {
            let error = refusal(options.clone(), text)?;
            assert!(error.contains(culprit), "expected {culprit:?} in: {error}");
        }
        Ok(())
    });
}

#[test]
fn a_large_variable_costs_nothing_until_it_is_used() {
    // More than most machines have twice; the device only promises it.
    let text = format!(
        "{HEADER}.visible .global .align 8 .b8 big[6000000000];\n.visible .global .u32 small[4] = {{1, 2}};\n"
    );
    for_each_engine(|options| {
        let module = Device::cpu_with(options)?.load_ptx(&text)?;
        assert_eq!(module.global::<u32>("small")?.to_vec()?, [1, 2, 0, 0]);
        Ok(())
    });
}

#[test]
fn large_modules_are_made_ready_all_the_same() {
    let mut straight = String::new();
    for i in 0..20_000 {
        let _ = writeln!(straight, "add.u32 %r{}, %r{}, {i};", i % 8, (i + 3) % 8);
    }
    let mut branches = String::new();
    for i in 0..4_000 {
        let _ = writeln!(
            branches,
            "setp.gt.u32 %p0, %r{}, {i};\n@%p0 bra L{i};\nadd.u32 %r0, %r0, {i};\nL{i}:",
            i % 8
        );
    }
    let targets: Vec<String> = (0..3_000).map(|i| format!("T{i}")).collect();
    let mut table =
        format!("mov.u32 %r0, 0;\nwhere: .branchtargets {};\nbrx.idx %r0, where;\n", targets.join(", "));
    for target in &targets {
        let _ = writeln!(table, "{target}: add.u32 %r1, %r1, 1;");
    }
    let mut loops = String::new();
    for i in 0..60 {
        let _ = writeln!(loops, "N{i}: add.u32 %r0, %r0, 1;");
    }
    for i in (0..60).rev() {
        let _ = writeln!(loops, "setp.lt.u32 %p0, %r0, {i};\n@%p0 bra N{i};");
    }
    let mut calls = HEADER.to_owned();
    for i in 0..1_000 {
        let next = if i == 0 { String::new() } else { format!("call f{};\n", i - 1) };
        let _ = writeln!(calls, ".func f{i}()\n{{\n{next}ret;\n}}");
    }
    calls += &kernel("call f999;")[HEADER.len()..];
    let mut barriers = String::new();
    for i in 0..1_000 {
        let _ = writeln!(barriers, "bar.sync {};\nadd.u32 %r0, %r0, 1;", i % 16);
    }
    let registers = kernel(".reg .b64 %x<262000>;\nmov.u64 %x261999, 1;");
    let texts = [
        kernel(&straight),
        kernel(&branches),
        kernel(&table),
        kernel(&loops),
        calls,
        kernel(&barriers),
        registers,
    ];
    for_each_engine(|options| {
        for text in &texts {
            assert_eq!(prepare(&Device::cpu_with(options.clone())?, text), 1, "{}", &text[..400]);
        }
        Ok(())
    });
}
