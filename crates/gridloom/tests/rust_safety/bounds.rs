//! Indices out of bounds, by every way to a place.

use gridloom::prelude::*;
use gridloom::{Out, View2, View3, block, kernel, thread};

use crate::fails;
use crate::support::for_each_device;

/// Defines kernels over eight elements, given a number, whose launch fails.
macro_rules! failing {
    ($($name:ident($n:ident = $value:expr) says $says:expr, |$x:ident, $out:ident| { $($body:tt)* })*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn attack($n: usize, $x: &[u32], $out: Out<u32>) { $($body)* }
            fails(
                |device, stream| {
                    let (x, out) = (device.buffer_from(&[1u32; 8])?, device.buffer_from(&[0u32; 8])?);
                    stream.launch(&attack::load(device)?, LaunchConfig::new(1, 8), ($value, &x, &out))
                },
                $says,
            );
        }
    )*};
}

const OUT: &str = "index out of bounds";

failing! {
    an_index_past_the_end(n = 8) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[n]; }
    }
    the_largest_index(n = usize::MAX) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[n]; }
    }
    an_index_whose_address_wraps_around(n = 1 << 62) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[n]; }
    }
    an_index_of_32_bits_and_more(n = (1 << 32) + 1) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[n]; }
    }
    an_index_that_wraps_below_zero(n = 9) says OUT, |x, out| {
        if let Some((i, out)) = out.mine() { *out = x[i.wrapping_sub(n)]; }
    }
    a_negative_index(n = 5) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[-(n as i32) as usize]; }
    }
    an_index_from_a_float(n = 40) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[(2.0f64.powi(n as i32)) as usize]; }
    }
    an_index_that_a_product_wraps(n = 1 << 61) says OUT, |x, out| {
        if let Some((i, out)) = out.mine() { *out = x[(i + 1).wrapping_mul(n).wrapping_add(8)]; }
    }
    an_index_in_a_loop_past_the_end(n = 9) says OUT, |x, out| {
        let mut sum = 0;
        for i in 0..n { sum += x[i]; }
        if let Some((_, out)) = out.mine() { *out = sum; }
    }
    an_index_in_a_loop_from_above(n = 12) says OUT, |x, out| {
        let mut sum = 0;
        let mut i = n;
        while i > 0 { i -= 1; sum += x[i]; }
        if let Some((_, out)) = out.mine() { *out = sum; }
    }
    neighbours_past_the_end(n = 7) says OUT, |x, out| {
        if let Some((_, out)) = out.mine() { *out = x[n - 1] + x[n] + x[n + 1]; }
    }
    an_index_after_a_test_of_another(n = 8) says OUT, |x, out| {
        let i = thread::index();
        if i < x.len() { if let Some((_, out)) = out.mine() { *out = x[i + n]; } }
    }
    an_index_into_a_part(n = 3) says OUT, |x, out| {
        let part = &x[2..5];
        if let Some((_, out)) = out.mine() { *out = part[n]; }
    }
    a_part_that_ends_past_the_end(n = 9) says OUT, |x, out| {
        let part = &x[2..n];
        if let Some((_, out)) = out.mine() { *out = part[0]; }
    }
    a_part_that_ends_before_its_start(n = 1) says OUT, |x, out| {
        let part = &x[2..n];
        if let Some((_, out)) = out.mine() { *out = part.len() as u32; }
    }
    a_part_up_to_the_largest_index(n = usize::MAX) says OUT, |x, out| {
        let part = &x[2..=n];
        if let Some((_, out)) = out.mine() { *out = part.len() as u32; }
    }
    an_index_into_an_array(n = 4) says OUT, |_x, out| {
        let a = [1u32, 2, 3, 4];
        if let Some((_, out)) = out.mine() { *out = a[n]; }
    }
    an_index_into_an_array_of_arrays(n = 2) says OUT, |_x, out| {
        let a = [[1u32, 2], [3, 4]];
        if let Some((_, out)) = out.mine() { *out = a[1][n]; }
    }
    an_index_that_is_written_in_an_array(n = 70) says OUT, |_x, out| {
        let mut a = [0u32; 70];
        a[n] = 5;
        if let Some((_, out)) = out.mine() { *out = a[1]; }
    }
    an_index_into_shared_memory(n = 16) says OUT, |_x, out| {
        let tile = block::sync(block::shared::<u32, 16>(1));
        if let Some((_, out)) = out.mine() { *out = tile[n]; }
    }
    an_index_of_33_bits_into_shared_memory(n = 1 << 32) says OUT, |_x, out| {
        let tile = block::sync(block::shared::<u32, 16>(1));
        if let Some((_, out)) = out.mine() { *out = tile[n]; }
    }
    an_index_into_dynamic_memory(n = 0) says OUT, |_x, out| {
        let tile = block::sync(block::shared_dynamic(1u32));
        if let Some((_, out)) = out.mine() { *out = tile[n]; }
    }
    an_index_into_a_chunk(n = 2) says OUT, |_x, out| {
        if let Some(part) = out.chunk(2) { part[n] = 1; }
    }
    an_index_of_a_column(n = 4) says "of a view", |x, out| {
        let view = View2::new(x, 4);
        if let Some((_, out)) = out.mine() { *out = view.at(n, 0); }
    }
    an_index_of_a_row(n = 2) says "of a view", |x, out| {
        let view = View2::new(x, 4);
        if let Some((_, out)) = out.mine() { *out = view.at(0, n); }
    }
    a_view_of_rows_without_elements(n = 0) says "", |x, out| {
        let view = View2::new(x, n);
        if let Some((_, out)) = out.mine() { *out = view.at(0, 0); }
    }
    a_volume_whose_plane_wraps_around(n = 1 << 32) says "", |x, out| {
        let view = View3::new(x, n, n);
        if let Some((_, out)) = out.mine() { *out = view.at(0, 0, 1); }
    }
    an_own_element_of_another_thread(n = 1) says "", |_x, out| {
        let i = thread::index();
        if let Some(mut own) = out.own() { own[i + n] = 1; }
    }
    an_option_without_a_value(n = 8) says "None", |x, out| {
        if let Some((_, out)) = out.mine() { *out = *x.get(n).unwrap(); }
    }
}

/// Options and iterators that end before the memory does, with equal results.
macro_rules! harmless {
    ($($name:ident($n:ident = $value:expr) gives $gives:expr, |$x:ident| { $($body:tt)* })*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn attack($n: usize, $x: &[u32], out: Out<u32>) {
                let result = { $($body)* };
                if let Some((_, out)) = out.mine() { *out = result; }
            }
            for_each_device(|device| {
                let (x, out) = (device.buffer_from(&[1u32, 2, 3, 4, 5, 6, 7, 8])?, device.buffer_from(&[0u32])?);
                let stream = device.stream()?;
                stream.launch(&attack::load(device)?, LaunchConfig::new(1, 1), ($value, &x, &out))?;
                assert_eq!(out.to_vec()?, [$gives]);
                Ok(())
            });
        }
    )*};
}

harmless! {
    an_option_past_the_end(n = 8) gives 9, |x| { x.get(n).copied().unwrap_or(9) }
    an_option_at_the_largest_index(n = usize::MAX) gives 9, |x| { x.get(n).map_or(9, |v| *v) }
    an_option_with_a_guard(n = 1 << 40) gives 3, |x| { if let Some(v) = x.get(n) && *v > 0 { *v } else { 3 } }
    two_options_of_which_one_is_outside(n = 8) gives 4, |x| {
        match (x.get(n), x.get(3)) { (Some(a), Some(b)) => *a + *b, (None, Some(b)) => *b, _ => 0 }
    }
    an_iterator_that_skips_more_than_there_is(n = usize::MAX) gives 0, |x| { x.iter().skip(n).sum::<u32>() }
    an_iterator_that_skips_past_the_end_and_counts(n = 9) gives 0, |x| { x.iter().skip(n).take(3).count() as u32 }
    an_iterator_that_takes_more_than_there_is(n = usize::MAX) gives 36, |x| { x.iter().take(n).sum::<u32>() }
    an_iterator_with_a_stride_past_the_end(n = usize::MAX) gives 1, |x| { x.iter().step_by(n).sum::<u32>() }
    two_iterators_of_different_lengths(n = 3) gives 6, |x| { x.iter().zip(&x[..n]).map(|(a, _)| *a).sum::<u32>() }
    windows_larger_than_the_slice(n = 9) gives 0, |x| { let mut c = 0; for w in x.windows(n) { c += w[0]; } c }
    parts_larger_than_the_slice(n = 9) gives 0, |x| { let mut c = 0; for w in x.chunks_exact(n) { c += w[0]; } c }
    parts_that_do_not_fill_the_slice(n = 3) gives 5, |x| { let mut c = 0; for w in x.chunks_exact(n) { c += w[0]; } c }
    a_range_that_ends_before_it_starts(n = 5) gives 0, |x| { let mut c = 0; for i in n..2 { c += x[i]; } c }
    the_last_of_nothing(n = 8) gives 7, |x| { x[n..].last().copied().unwrap_or(7) }
    the_first_of_nothing(n = 8) gives 7, |x| { x[n..].first().copied().unwrap_or(7) }
}
