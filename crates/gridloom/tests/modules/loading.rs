//! Loading of modules, and looking up kernels and variables.

use gridloom::prelude::*;

use crate::support::{for_each_device, for_each_engine, is_cpu, refused};

const HEADER: &str = ".version 8.3\n.target sm_75\n.address_size 64\n";

fn with_header(body: &str) -> String {
    format!("{HEADER}{body}")
}

#[test]
fn a_module_lists_its_kernels() {
    for_each_device(|device| {
        let text = with_header(".visible .entry one()\n{\n ret;\n}\n.visible .entry two()\n{\n ret;\n}\n");
        let module = device.load_ptx(&text)?;
        let mut names = module.kernel_names();
        names.sort_unstable();
        assert_eq!(names, ["one", "two"]);
        assert!(format!("{module:?}").contains("one"));
        Ok(())
    });
}

#[test]
fn a_module_without_kernels_can_be_loaded() {
    for_each_device(|device| {
        assert!(device.load_ptx(HEADER)?.kernel_names().is_empty());
        let module = device.load_ptx(&with_header(".visible .global .align 4 .u32 x = 7;\n"))?;
        assert_eq!(module.global::<u32>("x")?.to_vec()?, [7]);
        Ok(())
    });
}

#[test]
fn text_that_is_not_ptx_is_refused_with_a_log() {
    for_each_device(|device| {
        for text in ["", "this is not PTX", "fn main() {}", "\0\0\0", ".version 8.3"] {
            let error = refused(device.load_ptx(text), ErrorKind::InvalidModule, &[]);
            assert!(!error.message().is_empty(), "{text:?}");
        }
        let error = refused(
            device.load_ptx(&with_header(".visible .entry k()\n{\n frobnicate.u32;\n")),
            ErrorKind::InvalidModule,
            &[],
        );
        assert!(error.log().is_some(), "the compiler's log: {error}");
        Ok(())
    });
}

#[test]
fn a_parse_error_has_the_line_and_a_caret_under_the_place() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let cases = [
            (".visible .entry k()\n{\n .reg .u32 %r;\n add.u32 %r, %r 1;\n ret;\n}\n", 7, "%r, %r 1"),
            (".visible .entry k()\n{\n mov.u32 %missing, 1;\n ret;\n}\n", 6, "%missing"),
            (".visible .entry k()\n{\n bra nowhere;\n}\n", 6, "nowhere"),
            (".visible .entry k(\n .param .u32 a\n{\n ret;\n}\n", 6, "{"),
        ];
        for (body, line, shown) in cases {
            let line = format!("{line}");
            let error = refused(
                device.load_ptx(&with_header(body)),
                ErrorKind::InvalidModule,
                &[&format!("line {line}"), &format!("{line}:"), shown, "^"],
            );
            let log = error.log().expect("it shows the line");
            let source = log.lines().position(|text| text.contains(shown)).expect("the line is shown");
            assert!(log.lines().skip(source + 1).any(|text| text.contains('^')), "a caret below: {log}");
        }
        Ok(())
    });
}

#[test]
fn an_unknown_kernel_lists_those_there_are() {
    for_each_device(|device| {
        let text = with_header(".visible .entry one()\n{\n ret;\n}\n.visible .entry two()\n{\n ret;\n}\n");
        let module = device.load_ptx(&text)?;
        refused(module.untyped_kernel("three"), ErrorKind::NotFound, &["three", "one", "two"]);
        // SAFETY: there is no such kernel.
        refused(unsafe { module.kernel::<()>("three") }, ErrorKind::NotFound, &["three", "one", "two"]);
        Ok(())
    });
}

#[test]
fn an_instruction_that_is_not_supported_is_named_when_its_kernel_is_looked_up() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let text = with_header(
            ".visible .entry fine()\n{\n ret;\n}\n.visible .entry strange()\n{\n .reg .b32 %r;\n frob.sync.b32 %r, %r;\n ret;\n}\n",
        );
        let module = device.load_ptx(&text)?;
        module.untyped_kernel("fine")?;
        refused(module.untyped_kernel("strange"), ErrorKind::NotSupported, &["frob", "11"]);
        Ok(())
    });
}

#[test]
fn a_kernel_that_calls_what_nobody_defines_is_refused_when_it_is_looked_up() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let text = with_header(
            ".extern .func elsewhere();\n.visible .entry fine()\n{\n ret;\n}\n.visible .entry calls()\n{\n call.uni elsewhere, ();\n ret;\n}\n",
        );
        let module = device.load_ptx(&text)?;
        module.untyped_kernel("fine")?;
        let error = module.untyped_kernel("calls").expect_err("nobody defines it");
        assert!(error.to_string().contains("elsewhere"), "{error}");
        Ok(())
    });
}

#[test]
fn a_kernel_keeps_its_module_alive() {
    for_each_device(|device| {
        let text = with_header(
            ".visible .entry store(.param .u64 p)\n{\n .reg .b64 %p;\n ld.param.u64 %p, [p];\n cvta.to.global.u64 %p, %p;\n st.global.u32 [%p], 42;\n ret;\n}\n",
        );
        let stream = device.stream()?;
        let out = device.buffer_from(&[0u32])?;
        // SAFETY: the kernel writes one word.
        let kernel = unsafe { device.load_ptx(&text)?.kernel::<(PtrMut<u32>,)>("store")? };
        assert_eq!(kernel.name(), "store");
        stream.launch(&kernel, LaunchConfig::one(), (&out,))?;
        drop(kernel);
        assert_eq!(out.to_vec()?, [42]);
        Ok(())
    });
}

#[test]
fn machine_code_is_for_gpus() {
    for_each_device(|device| {
        let result = device.load_binary(b"not a cubin");
        if is_cpu(device) {
            refused(result, ErrorKind::NotSupported, &["PTX"]);
        } else {
            refused(result, ErrorKind::InvalidModule, &[]);
        }
        Ok(())
    });
}

#[test]
fn a_kernel_of_another_device_is_refused() {
    for_each_engine(|options| {
        let (ours, theirs) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        let module = theirs.load_ptx(&with_header(".visible .entry nothing()\n{\n ret;\n}\n"))?;
        // SAFETY: the kernel does nothing.
        let kernel = unsafe { module.kernel::<()>("nothing")? };
        let says = ["nothing", "another device"];
        refused(ours.stream()?.launch(&kernel, LaunchConfig::one(), ()), ErrorKind::WrongDevice, &says);
        refused(Graph::new(&ours).launch(&kernel, LaunchConfig::one(), ()), ErrorKind::WrongDevice, &says);
        Ok(())
    });
}

#[test]
fn the_block_that_a_kernel_demands_is_kept() {
    for_each_device(|device| {
        let text = with_header(
            ".visible .entry exact()\n.reqntid 64, 2, 1\n{\n ret;\n}\n.visible .entry most()\n.maxntid 128\n{\n ret;\n}\n",
        );
        let (module, stream) = (device.load_ptx(&text)?, device.stream()?);
        // SAFETY: the kernels do nothing.
        let (exact, most) = unsafe { (module.kernel::<()>("exact")?, module.kernel::<()>("most")?) };
        stream.launch(&exact, LaunchConfig::new(3, (64, 2)), ())?;
        stream.launch(&most, LaunchConfig::new(1, 128), ())?;
        stream.synchronize()?;
        refused(
            stream.launch(&most, LaunchConfig::new(1, 129), ()),
            ErrorKind::InvalidArgument,
            &["most", "129"],
        );
        if is_cpu(device) {
            let other = stream.launch(&exact, LaunchConfig::new(1, 64), ());
            refused(other, ErrorKind::InvalidArgument, &["exact", "64x2x1", ".reqntid"]);
        }
        Ok(())
    });
}

#[test]
fn a_variable_is_read_only_as_elements_that_it_is_aligned_for() {
    const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 1 .b8 first[1];
.visible .global .align 1 .b8 bytes[8];
.visible .global .align 8 .b8 words[8];
.visible .entry nothing() { ret; }
";
    for_each_device(|device| {
        let module = device.load_ptx(PTX)?;
        assert_eq!(module.global::<u64>("words")?.len(), 1);
        let bytes = module.global::<u8>("bytes")?;
        if bytes.address()?.is_multiple_of(8) {
            module.global::<u64>("bytes")?;
        } else {
            refused(module.global::<u64>("bytes"), ErrorKind::ParameterMismatch, &["bytes", "aligned"]);
        }
        Ok(())
    });
}
