//! The print sink of the CPU device is user code: it may panic, wait and call the library.

use std::sync::{Arc, Mutex, OnceLock};

use gridloom::prelude::*;

use super::ends;
use crate::support::graph_kernels::read;
use crate::support::{Bench, GraphKernels, eventually, for_each_engine, in_own_process, refused};

const PTX: &str = include_str!("../kernels/printing.ptx");

/// A device whose kernels print to `sink`, with a module of kernels that print.
fn printing_to(options: CpuOptions, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Result<Bench> {
    Bench::new(&Device::cpu_with(options.print(sink))?, PTX)
}

/// Launches a kernel of a few blocks that print, and waits for it. It must come to an end.
fn print(bench: Bench) -> Result<()> {
    ends("a kernel that prints", move || bench.run::<()>("hello", LaunchConfig::new(4, 40), ()))
}

#[test]
fn a_print_sink_that_panics_fails_the_launch_and_nothing_else() {
    for_each_engine(|options| {
        let sink = |text: &[u8]| assert!(text.starts_with(b"7"), "no room left");
        let bench = printing_to(options, sink)?;
        let out = bench.zeros::<i32>(1)?;
        let kernel = bench.kernel::<(PtrMut<i32>, i32)>("print_count")?;
        let (graph, stream) = (Graph::new(&bench.device), bench.stream.clone());
        graph.launch(&kernel, LaunchConfig::one(), (&out, 8))?.named("report")?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        let says = ["report", "print sink", "no room left"];
        let waited = ends("a launch whose sink panics", move || stream.synchronize());
        refused(waited, ErrorKind::CallbackPanicked, &says);
        assert!(executable.take_error().is_some());
        let config = LaunchConfig::new(4, 40);
        refused(bench.run::<()>("hello", config, ()), ErrorKind::CallbackPanicked, &["print sink"]);
        bench.run::<(PtrMut<i32>, i32)>("print_count", LaunchConfig::one(), (&out, 7))
    });
}

#[test]
fn what_a_print_sink_panics_with_may_panic_again() {
    struct Again;
    impl Drop for Again {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(Again);
            }
        }
    }
    for_each_engine(|options| {
        let bench = printing_to(options, |_| std::panic::panic_any(Again))?;
        for _ in 0..3 {
            let next = Bench {
                device: bench.device.clone(),
                stream: bench.stream.clone(),
                module: bench.module.clone(),
            };
            refused(print(next), ErrorKind::CallbackPanicked, &["print sink"]);
        }
        Ok(())
    });
}

#[test]
fn using_its_device_inside_a_print_sink_is_refused_and_does_not_hang() {
    for_each_engine(|options| {
        type Parts = (Device, Stream, Event, Buffer<i32>, Executable);
        let (parts, answers) = (Arc::new(OnceLock::<Parts>::new()), Arc::new(Mutex::new(Vec::new())));
        let (own, told) = (parts.clone(), answers.clone());
        let bench = printing_to(options, move |_| {
            let (device, stream, event, buffer, executable) = own.get().expect("set before the launch");
            told.lock().expect("no panic").extend([
                stream.synchronize(),
                stream.memset(buffer, 0u8),
                stream.record(event),
                event.synchronize(),
                device.synchronize(),
                executable.launch(stream),
                buffer.to_vec().map(drop),
                buffer.write(&[1]),
            ]);
        })?;
        let device = bench.device.clone();
        let executable = Graph::new(&device).instantiate()?;
        let made =
            (device.clone(), bench.stream.clone(), device.event()?, device.buffer_from(&[5])?, executable);
        assert!(parts.set(made).is_ok());
        print(bench)?;
        let answers = std::mem::take(&mut *answers.lock().expect("no panic"));
        assert_eq!(answers.len(), 8 * 160);
        for answer in answers {
            refused(answer, ErrorKind::InvalidState, &["callback"]);
        }
        Ok(())
    });
}

#[test]
fn a_print_sink_runs_kernels_on_another_device() {
    for_each_engine(|options| {
        let kernels = GraphKernels::new(&Device::cpu_with(options.clone())?)?;
        let count = kernels.value(0)?;
        let (beside, counted) = (Mutex::new(kernels), count.clone());
        let bench = printing_to(options, move |_| {
            let kernels = beside.lock().expect("no panic");
            let launch = || {
                kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&counted, 1, 1))?;
                kernels.stream.synchronize()
            };
            launch().expect("another device can be used");
        })?;
        print(bench)?;
        assert_eq!(read(&count)?, 160);
        Ok(())
    });
}

#[test]
fn a_callback_runs_kernels_on_another_device() {
    for_each_engine(|options| {
        let kernels = GraphKernels::new(&Device::cpu_with(options.clone())?)?;
        let (count, stream) = (kernels.value(0)?, Device::cpu_with(options)?.stream()?);
        let counted = count.clone();
        stream.callback(move || {
            let launch = || {
                kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&counted, 1, 1))?;
                kernels.stream.synchronize()
            };
            launch().expect("another device can be used");
        })?;
        ends("a callback that waits for another device", move || stream.synchronize())?;
        assert_eq!(read(&count)?, 1);
        Ok(())
    });
}

#[test]
fn devices_whose_print_sinks_wait_for_each_other_get_an_error_and_no_hang() {
    for_each_engine(|options| {
        /// Each sink waits for the stream of the other device, while both print.
        type Streams = Arc<OnceLock<[Stream; 2]>>;
        let (streams, refusals): (Streams, _) = (Arc::default(), Arc::new(Mutex::new(0)));
        let bench = |other: usize| {
            let (streams, refusals) = (streams.clone(), refusals.clone());
            printing_to(options.clone(), move |_| {
                let waited = streams.get().expect("set before the launch")[other].synchronize();
                *refusals.lock().expect("no panic") += usize::from(waited.is_err());
            })
        };
        let benches = [bench(1)?, bench(0)?];
        assert!(streams.set(benches.each_ref().map(|bench| bench.stream.clone())).is_ok());
        ends("devices that wait for each other", move || -> Result<()> {
            for _ in 0..20 {
                for bench in &benches {
                    let kernel = bench.kernel::<()>("hello")?;
                    bench.stream.launch(&kernel, LaunchConfig::new(4, 40), ())?;
                }
                benches.iter().try_for_each(|bench| bench.stream.synchronize())?;
            }
            Ok(())
        })
    });
}

#[test]
fn a_print_sink_that_panics_or_waits_when_it_is_dropped_does_no_harm() {
    for_each_engine(|options| {
        /// Waits for another device, tells, and panics.
        struct Last(Stream, Arc<Mutex<bool>>);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.synchronize().expect("another device");
                *self.1.lock().expect("no panic") = true;
                panic!("in a drop, as the test wants");
            }
        }
        let gone = Arc::new(Mutex::new(false));
        let last = Last(Device::cpu_with(options.clone())?.stream()?, gone.clone());
        let bench = printing_to(options, move |_| assert!(!*last.1.lock().expect("no panic")))?;
        let kernel = bench.kernel::<()>("hello")?;
        bench.stream.launch(&kernel, LaunchConfig::new(4, 40), ())?;
        drop((bench, kernel));
        eventually("the sink is dropped", || *gone.lock().expect("no panic"));
        Ok(())
    });
}

#[test]
fn a_kernel_prints_while_a_thread_that_waits_for_it_holds_standard_output() {
    if in_own_process(
        module_path!(),
        "a_kernel_prints_while_a_thread_that_waits_for_it_holds_standard_output",
    ) {
        for_each_engine(|options| {
            let bench = Bench::new(&Device::cpu_with(options)?, PTX)?;
            let held = std::io::stdout().lock();
            let outcome = print(bench);
            drop(held);
            outcome
        });
    }
}
