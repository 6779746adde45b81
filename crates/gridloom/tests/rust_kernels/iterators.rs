//! Iterators of slices, arrays and ranges, their adaptors, and the methods of options.

use gridloom::{Out, kernel};

use crate::harness::*;

programs! {
    a_sum_of_a_range(x: u32) -> u32, COUNTS, { (0..x % 10).sum::<u32>() }
    a_product_of_an_inclusive_range(x: u64) -> u64, [0, 1, 5, 12], { (1..=x).product() }
    a_fold_of_a_mapped_range(x: i32) -> i32, SMALL, { (0..5).map(|k| k * x).fold(1i32, |a, b| a.wrapping_mul(31).wrapping_add(b)) }
    a_filtered_range(x: u32) -> u32, COUNTS, { let mut sum = 0; for k in (0..20).filter(|k| k % 3 == x % 3) { sum = sum * 7 % 1009 + k; } sum }
    numbers_of_a_filtered_range(x: u32) -> u32, COUNTS, { let mut sum = 0; for (n, k) in (0..20u32).filter(|&k| k % 3 == x % 3).enumerate() { sum = sum * 7 % 1009 + k * n as u32; } sum }
    a_reversed_inclusive_range(x: u8) -> u32, U8S, { let mut sum = 0u32; for k in (x..=x.saturating_add(3)).rev() { sum = sum * 5 + k as u32; } sum }
    the_first_items(x: u32) -> u32, COUNTS, { (0..100u32).take((x % 7) as usize).sum() }
    all_but_the_first_items(x: u32) -> u32, COUNTS, { (0..10u32).skip((x % 14) as usize).sum() }
    items_up_to_one(x: u32) -> u32, COUNTS, { (0..100u32).take_while(|&k| k * k < x).sum() }
    zipped_arrays(x: i32) -> i32, SMALL, { let (a, b) = ([1, x, 3], [x, 5, 6]); a.iter().zip(b.iter()).map(|(a, b)| a * b).sum() }
    a_zip_ends_with_the_shorter(x: i32) -> i32, SMALL, { let a = [1, x, 3, 4]; let mut sum = 0; for (k, v) in (0..3).zip(a) { sum = sum * 10 + k * v; } sum }
    references_to_elements(x: f32) -> f32, [0.0, 1.5, -3.0], { let a = [x, 2.0, x * x]; let mut sum = 0.0; for v in &a { sum += v; } sum + a.iter().map(|v| v * 2.0).sum::<f32>() }
    elements_that_change(x: i32) -> i32, SMALL, { let mut a = [x, 2, 3]; for v in a.iter_mut() { *v *= 2; } for v in &mut a { *v += 1; } a[0] + a[1] * 10 + a[2] * 100 }
    elements_from_the_end(x: i32) -> i32, SMALL, { let a = [x, 2, 3]; let mut sum = 0; for &v in a.iter().rev() { sum = sum * 10 + v; } sum }
    every_other_element(x: i32) -> i32, SMALL, { let a = [x, 2, 3, 4, 5]; a.iter().step_by(2).copied().sum() }
    the_least_and_greatest(x: i32) -> i32, SMALL, { let a = [x, 2, -3]; a.iter().copied().min().unwrap() * 100 + a.iter().copied().max().unwrap_or(7) }
    an_empty_least(x: u32) -> u32, COUNTS, { (5..x).min().unwrap_or(99) }
    whether_any_and_all(x: i32) -> i32, SMALL, { let a = [x, 2, 30]; a.iter().any(|&v| v > 20) as i32 + 2 * a.iter().all(|v| *v > 0) as i32 }
    a_position(x: i32) -> i32, SMALL, { let a = [10, x, 30, x]; match a.iter().position(|&v| v == x) { Some(i) => i as i32, None => -1 } }
    a_find(x: i32) -> i32, SMALL, { (0..50).find(|&k| k * k > x).unwrap_or(-1) }
    a_count_and_a_last(x: u32) -> u32, COUNTS, { let even = (0..x % 50).filter(|k| k % 2 == 0).count() as u32; even * 100 + (0..x % 5).last().unwrap_or(77) }
    for_each_of_a_range(x: i32) -> i32, SMALL, { let mut sum = 0; (0..4).for_each(|k| sum += k * x); sum }
    an_iterator_in_a_variable(x: i32) -> i32, SMALL, { let a = [x, 2]; let doubled = a.iter().map(|v| v * 2); let mut sum = 0; for v in doubled { sum += v; } sum }
    nested_adaptors(x: u32) -> u32, COUNTS, { (0..6u32).map(|i| (0..i).filter(|j| (i + j) % 2 == x % 2).map(|j| i * j).sum::<u32>()).sum() }
    an_option_mapped_or_not(x: u32) -> u32, COUNTS, { x.checked_sub(4).map_or(1000, |y| y * 2) }
    an_option_computed_lazily(x: u32) -> u32, COUNTS, { x.checked_sub(4).map_or_else(|| x + 50, |y| y * 2) + x.checked_sub(7).unwrap_or_else(|| x * 3) }
    options_in_a_chain(x: u32) -> u32, COUNTS, { x.checked_sub(2).and_then(|y| y.checked_sub(3)).filter(|&y| y % 2 == 0).or(Some(55)).unwrap_or(9) }
    options_asked_for_their_values(x: u32) -> u32, COUNTS, { let o = x.checked_sub(4); o.is_some_and(|y| y > 3) as u32 + 2 * o.is_none_or(|y| y > 3) as u32 + o.unwrap_or_default() * 10 }
    two_options(x: u32) -> u32, COUNTS, { match x.checked_sub(2).zip(x.checked_sub(5)) { Some((a, b)) => a * 100 + b, None => 3 } }
    a_condition_as_an_option(x: i32) -> i32, SMALL, { (x > 2).then(|| x * 2).unwrap_or(-5) + (x > 5).then_some(100).unwrap_or(0) }
    a_range_that_contains(x: i32) -> i32, SMALL, { (1..5).contains(&x) as i32 + 2 * (1..=7).contains(&x) as i32 }
}

#[test]
fn the_dot_product_of_two_slices() {
    #[kernel]
    fn program(x: &[f32], out: Out<f32>) {
        if let Some((i, out)) = out.mine() {
            let tail = &x[i..];
            *out = x.iter().zip(tail).map(|(a, b)| a * b).sum();
        }
    }
    same("dot", |x, out| program(x, out), program::load, &[1.0f32, 2.5, -3.0, 4.0, 0.5]);
}

#[test]
fn windows_and_chunks_of_a_slice() {
    #[kernel]
    fn program(x: &[i32], out: Out<i32>) {
        if let Some((i, out)) = out.mine() {
            let mut sum = 0i32;
            for w in x.windows(3) {
                sum = sum.wrapping_mul(31).wrapping_add(w[0] - w[1] * w[2]);
            }
            for (n, c) in x.chunks_exact(i + 1).enumerate() {
                sum = sum.wrapping_mul(7).wrapping_add(c[0] * n as i32 + c.len() as i32);
            }
            *out = sum;
        }
    }
    same("windows", |x, out| program(x, out), program::load, &[1, 5, -3, 4, 9, 2, 2]);
    same("windows", |x, out| program(x, out), program::load, &[1, 5]);
}

#[test]
fn elements_of_slices_found_and_counted() {
    #[kernel]
    fn program(x: &[i32], out: Out<[i32; 4]>) {
        if let Some((i, out)) = out.mine() {
            let below = x.iter().filter(|&&v| v < x[i]).count();
            let first = x.iter().position(|v| *v == x[i]).unwrap();
            let greatest = x.iter().copied().take(i + 1).max().unwrap();
            let other = x.get(i + 1).copied().unwrap_or(-1);
            *out = [below as i32, first as i32, greatest, other];
        }
    }
    same("found", |x, out| program(x, out), program::load, &[3, 1, 4, 1, 5, 9, 2, 6]);
}
