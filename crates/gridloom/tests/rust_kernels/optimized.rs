//! What the PTX of a kernel looks like after it was made fast.

use gridloom::__kernel::as_for_gpus;
use gridloom::prelude::*;
use gridloom::{Out, block, kernel, thread};

/// How many lines of the kernel have a text.
fn count(ptx: &str, text: &str) -> usize {
    let body = &ptx[ptx.find(".entry").unwrap_or(0)..];
    body.lines().filter(|line| line.contains(text)).count()
}

#[track_caller]
fn ptx<P>(kernel: Result<Kernel<P>>) -> String {
    kernel.unwrap().ptx().unwrap().to_owned()
}

/// The PTX of a kernel as GPUs run it.
macro_rules! for_gpus {
    ($load:expr) => {
        ptx(as_for_gpus(|| $load(&Device::cpu().unwrap())))
    };
}

#[test]
fn an_index_that_was_compared_with_the_length_is_not_checked_again() -> Result<()> {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((i, out)) = out.mine() {
            if i < x.len() && i > 0 {
                *out = x[i] + x[i - 1] + x[i / 2];
            }
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!(count(&ptx, "bra $F"), 0, "{ptx}");
    Ok(())
}

#[test]
fn the_elements_of_a_loop_over_a_slice_are_not_checked() -> Result<()> {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((_, out)) = out.mine() {
            for k in 0..x.len() {
                *out += x[k];
            }
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!(count(&ptx, "bra $F"), 0, "{ptx}");
    Ok(())
}

#[test]
fn checks_of_loads_in_short_branches_are_one_branch_before_them() -> Result<()> {
    #[kernel(block(64))]
    fn program(width: usize, x: &[f32], out: Out<f32>) {
        let row = block::x() as usize * width;
        let tile =
            block::sync(block::shared_from_fn::<f32, 256>(|i| if i < width { x[row + i] } else { 0.0 }));
        if let Some((i, out)) = out.mine() {
            *out = tile[i % 256];
        }
    }
    let ptx = for_gpus!(program::load);
    let small = &ptx[ptx.find(".entry").unwrap_or(0)..ptx.find("bar.sync").unwrap_or(0)];
    // The first load comes behind all checks.
    let (before, behind) = small.split_at(small.find("ld.global.nc.f32").unwrap_or(0));
    assert_eq!((count(before, "bra $F"), behind.contains("bra $F")), (0, false), "{ptx}");
    assert_eq!(count(behind, "ld.global.nc.f32"), 4, "{ptx}");
    Ok(())
}

#[test]
fn an_index_that_may_be_outside_is_checked() -> Result<()> {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((i, out)) = out.mine() {
            *out = x[i] + x[i.wrapping_add(1)];
        }
    }
    let ptx = for_gpus!(program::load);
    // One branch for both checks, behind which the one that failed is found.
    assert_eq!((count(&ptx, "bra $F"), count(&ptx, "bra.uni $F2")), (1, 1), "{ptx}");
    assert_eq!(count(&ptx, "and.pred"), 1, "{ptx}");
    Ok(())
}

#[test]
fn a_choice_between_values_does_not_branch() -> Result<()> {
    #[kernel]
    fn program(out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let before = *out;
            *out = if i % 2 == 0 { before } else { 7 };
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    // One for the threads that own nothing.
    assert_eq!((count(&ptx, "bra"), count(&ptx, "rem")), (1, 0), "{ptx}");
    Ok(())
}

#[test]
fn a_loop_with_few_passes_is_unrolled_and_its_counter_is_gone() -> Result<()> {
    #[kernel]
    fn program(x: &[[f32; 4]], out: Out<f32>) {
        if let Some((i, out)) = out.mine()
            && i < x.len()
        {
            let mut sum = 0.0;
            for k in 0..4 {
                sum += x[i][k];
            }
            *out = sum;
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!(
        (count(&ptx, "ld.global.nc.f32"), count(&ptx, "$H"), count(&ptx, "bra $F")),
        (4, 0, 0),
        "{ptx}"
    );
    Ok(())
}

#[test]
fn indices_of_shared_memory_have_32_bits() -> Result<()> {
    #[kernel]
    fn program(out: Out<u32>) {
        let mut tile = block::shared::<u32, 256>(0);
        for (i, slot) in tile.each_mine() {
            *slot = i as u32 * 3;
        }
        let tile = block::sync(tile);
        if let Some((_, out)) = out.mine() {
            *out = tile[thread::rank().wrapping_add(1) % 256];
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!((count(&ptx, "bra $F"), count(&ptx, "rem.u64"), count(&ptx, "and.b64")), (0, 0, 0), "{ptx}");
    Ok(())
}

#[test]
fn one_value_is_computed_once() -> Result<()> {
    #[kernel]
    fn program(out: Out<u32>) {
        if let Some((_, out)) = out.mine() {
            *out = thread::x() * 5 + thread::x() * 5;
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!(count(&ptx, "mul.lo.u32"), 1, "{ptx}");
    assert_eq!(count(&ptx, "%tid.x"), 1, "{ptx}");
    Ok(())
}

#[test]
fn a_promised_index_is_computed_in_32_bits() -> Result<()> {
    #[kernel]
    fn program(width: usize, x: &[f32], out: Out<f32>) {
        if let Some(((column, row), out)) = out.mine_2d(width) {
            *out = x[row.wrapping_add(1).wrapping_mul(width).wrapping_sub(column)];
        }
    }
    // SAFETY: it is not launched.
    let promised = for_gpus!(|device: &Device| unsafe { program::load_unchecked(device) });
    let checked = for_gpus!(program::load);
    // The version for launches of ordinary size ends where the other one starts.
    let small = |ptx: &str| ptx.split("$L1:").next().unwrap_or_default().to_owned();
    assert_eq!(count(&small(&promised), "sub.u32"), 1, "{promised}");
    assert_eq!(count(&small(&promised), "sub.u64"), 0, "{promised}");
    assert_eq!((count(&promised, "bra $F"), count(&checked, "bra $F")), (0, 2), "{promised}{checked}");
    Ok(())
}

#[test]
fn a_short_loop_does_four_passes_at_once_with_one_address() -> Result<()> {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((_, out)) = out.mine() {
            let mut sum = 0.0;
            for k in 0..x.len() {
                sum += x[k];
            }
            *out = sum;
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    // Four passes and the rest.
    assert_eq!(count(&ptx, "ld.global.nc.f32"), 5, "{ptx}");
    assert_eq!(count(&ptx, "+12]"), 1, "{ptx}");
    assert_eq!(count(&ptx, "bra $F"), 0, "{ptx}");
    Ok(())
}

#[test]
fn a_loop_that_is_left_in_the_middle_keeps_its_passes() -> Result<()> {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((_, out)) = out.mine() {
            for k in 0..x.len() {
                if x[k] < 0.0 {
                    break;
                }
                *out += x[k];
            }
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert!(!ptx.contains("+12]"), "{ptx}");
    Ok(())
}

#[test]
fn a_cpu_tests_each_index_where_it_is_used_and_computes_places_in_64_bits() -> Result<()> {
    #[kernel]
    fn program(width: usize, height: usize, x: &[f32], out: Out<f32>) {
        if let Some(((column, row), out)) = out.mine_2d(width) {
            let i = row * width + column;
            *out = if row + 1 < height { x[i] + x[i + width] } else { x[i] };
        }
    }
    let on_cpus = ptx(program::load(&Device::cpu()?));
    let on_gpus = for_gpus!(program::load);
    // Only for GPUs there is a version for launches of ordinary size.
    assert_eq!((count(&on_cpus, "2147483648"), count(&on_gpus, "2147483648")), (0, 1), "{on_cpus}{on_gpus}");
    // No check stands before the branch that its access is in.
    assert_eq!(count(&on_cpus, "or.pred"), 0, "{on_cpus}");
    Ok(())
}

#[test]
fn sums_of_blocks_end_in_shuffles_on_gpus_alone() -> Result<()> {
    #[kernel(block(256))]
    fn program(x: &[f32], out: Out<f32>) {
        let sum = block::sum(x[thread::index()]);
        if let Some((_, out)) = out.mine() {
            *out = sum;
        }
    }
    let (on_cpus, on_gpus) = (ptx(program::load(&Device::cpu()?)), for_gpus!(program::load));
    assert!(!on_cpus.contains("shfl") && on_gpus.contains("shfl"), "{on_cpus}{on_gpus}");
    Ok(())
}

#[test]
fn integers_of_32_bits_become_floats_in_one_instruction() -> Result<()> {
    #[kernel]
    fn program(x: &[i32], out: Out<f32>) {
        if let Some((i, out)) = out.mine() {
            *out = x[i] as f32 + x[i] as u8 as f32;
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!((count(&ptx, "cvt.rn.f32.s32"), count(&ptx, "cvt.rn.f32.u32")), (1, 1), "{ptx}");
    assert_eq!(count(&ptx, "cvt.s64"), 0, "{ptx}");
    Ok(())
}

#[test]
fn numbers_that_are_known_are_computed_when_the_kernel_is_loaded() -> Result<()> {
    #[kernel]
    fn program(out: Out<f32>) {
        if let Some((i, out)) = out.mine() {
            let (third, scale) = (1.0f32 / 3.0, 0.5f32);
            *out = i as f32 * (third * scale);
        }
    }
    let ptx = ptx(program::load(&Device::cpu()?));
    assert_eq!((count(&ptx, "rcp"), count(&ptx, "div"), count(&ptx, "mul.rn.f32")), (0, 0, 1), "{ptx}");
    Ok(())
}
