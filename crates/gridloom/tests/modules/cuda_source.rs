//! CUDA C++: compiled where NVRTC is found, and given as PTX by mistake.

use gridloom::CompileOptions;
use gridloom::prelude::*;

use crate::support::{for_each_device, refused};

const SCALE: &str = "\
template <typename T> __global__ void scale(T *x, T by)
{
    x[threadIdx.x] *= by;
}
";

/// Returns whether CUDA C++ can be compiled here. If not, one line says so.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn has_nvrtc() -> bool {
    let missing = gridloom::compile_cuda("", &CompileOptions::new()).err();
    if let Some(error) = &missing {
        let required = std::env::var_os("GRIDLOOM_REQUIRE_NVRTC").is_some_and(|value| value == "1");
        assert!(!required, "{error}");
        let why = error.to_string();
        eprintln!("skipped: {}", why.lines().next().unwrap_or_default());
    }
    missing.is_none()
}

#[test]
fn cuda_given_as_ptx_says_how_to_compile_it() {
    for_each_device(|device| {
        let says = ["this looks like CUDA C++", "load_cuda", "nvcc -ptx"];
        refused(device.load_ptx(SCALE), ErrorKind::InvalidModule, &says);
        Ok(())
    });
}

#[test]
fn templates_are_looked_up_by_their_names_and_the_ptx_can_be_read() {
    if !has_nvrtc() {
        return;
    }
    for_each_device(|device| {
        let options = CompileOptions::new().name_expressions(["scale<float>", "scale<double>"]);
        let module = device.load_cuda(SCALE, &options)?;
        // SAFETY: each thread multiplies one element.
        let scale = unsafe { module.kernel::<(PtrMut<f32>, f32)>("scale<float>")? };
        let ptx = module.ptx().expect("it was made from CUDA C++");
        assert!(ptx.contains(&format!(".entry {}(", scale.name())), "{ptx}");
        let (x, stream) = (device.buffer_from(&[1.0f32, 2.0])?, device.stream()?);
        stream.launch(&scale, LaunchConfig::new(1, 2), (&x, 3.0))?;
        assert_eq!(x.to_vec()?, [3.0, 6.0]);
        Ok(())
    });
}

#[test]
fn line_information_is_on_by_default_in_checked_mode() {
    if !has_nvrtc() {
        return;
    }
    let options = CompileOptions::new().name("scale.cu").name_expressions(["scale<float>"]);
    let lines = |checked: bool, options: &CompileOptions| -> Result<bool> {
        let device = Device::cpu_with(CpuOptions::new().checked(checked))?;
        Ok(device.load_cuda(SCALE, options)?.ptx().is_some_and(|ptx| ptx.contains(".loc")))
    };
    assert!(lines(true, &options).unwrap());
    assert!(!lines(false, &options).unwrap());
    assert!(!lines(true, &options.clone().line_info(false)).unwrap());
    assert!(lines(false, &options.line_info(true)).unwrap());
}

#[test]
fn an_access_out_of_bounds_says_how_far_beyond_which_argument() {
    const KERNEL: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 first, .param .align 8 .b8 pair[16])
{
    .reg .b64 %rd<3>;
    .reg .b32 %r0;
    ld.param.u64 %rd0, [first];
    ld.param.u64 %rd1, [pair+8];
    ld.global.u32 %r0, [%rd0];
    st.global.u32 [%rd1+16], %r0;
    ret;
}
";
    let run = || -> Result<()> {
        let device = Device::cpu_with(CpuOptions::new().checked(true))?;
        let (first, second) = (device.alloc::<u32>(4)?, device.alloc::<u32>(3)?);
        let kernel = device.load_ptx(KERNEL)?.untyped_kernel("touch")?;
        let stream = device.stream()?;
        let mut pair = [0; 16];
        pair[8..].copy_from_slice(&second.address()?.to_le_bytes());
        let args = [gridloom::kernel::Arg::memory(&first)?, gridloom::kernel::Arg::bytes(&pair)];
        // SAFETY: the device checks every access.
        unsafe { stream.launch_untyped(&kernel, LaunchConfig::one(), args)? };
        let says =
            ["write of 4 bytes", "ends 8 bytes beyond the memory of argument 1 (`pair`), which has 12 bytes"];
        refused(stream.synchronize(), ErrorKind::KernelFault, &says);
        Ok(())
    };
    run().unwrap();
}
