//! `printf` in kernels.

use std::sync::{Arc, Mutex};

use gridloom::prelude::*;

use crate::support::{Bench, for_each_engine};

const PTX: &str = include_str!("../kernels/printing.ptx");

/// Runs a test with a device whose kernels print into the text that is returned.
fn printed(options: CpuOptions, run: impl FnOnce(&Bench) -> Result<()>) -> Result<String> {
    let text = Arc::new(Mutex::new(Vec::new()));
    let out = text.clone();
    let print = move |bytes: &[u8]| out.lock().expect("no panic").extend_from_slice(bytes);
    let device = Device::cpu_with(options.print(print))?;
    run(&Bench::new(&device, PTX)?)?;
    let bytes = std::mem::take(&mut *text.lock().expect("no panic"));
    Ok(String::from_utf8(bytes).expect("text"))
}

#[test]
fn every_thread_prints_a_whole_line() {
    for_each_engine(|options| {
        let text = printed(options, |bench| bench.run::<()>("hello", LaunchConfig::new(2, 40), ()))?;
        let mut lines: Vec<&str> = text.lines().collect();
        let mut expected: Vec<String> = (0..2)
            .flat_map(|block| (0..40).map(move |t| format!("hello from block {block}, thread {t}")))
            .collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        Ok(())
    });
}

#[test]
fn conversions_print_as_in_c() {
    for_each_engine(|options| {
        let text = printed(options, |bench| {
            let args = (-42, 3_000_000_000u32, -5_000_000_000i64, 1234.5678f64);
            bench.run::<(i32, u32, i64, f64)>("print_formats", LaunchConfig::one(), args)
        })?;
        let expected = [
            "int -42, unsigned 3000000000, hex b2d05e00, char G",
            "long -5000000000, unsigned long 18446744068709551616, hex fffffffed5fa0e00",
            "float 1234.568, scientific 1.234568e+03, general 1234.57, right [   1234.57], left [1234.57   ]",
            "string text, percent %, pointer end",
            "nothing to convert",
        ];
        assert_eq!(text.lines().collect::<Vec<&str>>(), expected);
        Ok(())
    });
}

#[test]
fn what_a_kernel_prints_is_there_when_the_stream_is_synchronised() {
    for_each_engine(|options| {
        let text = printed(options, |bench| {
            let out = bench.zeros::<i32>(1)?;
            let kernel = bench.kernel::<(PtrMut<i32>, i32)>("print_count")?;
            let graph = Graph::new(&bench.device);
            let repeat = graph.repeat(3)?;
            repeat.body().launch(&kernel, LaunchConfig::one(), (&out, 7))?;
            graph.instantiate()?.launch(&bench.stream)?;
            bench.stream.synchronize()
        })?;
        assert_eq!(text, "7 8\n7 8\n7 8\n");
        Ok(())
    });
}
