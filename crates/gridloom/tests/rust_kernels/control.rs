//! Branches, loops, patterns and the order of evaluation.

use crate::harness::*;

programs! {
    a_branch_is_an_expression(x: i32) -> i32, I32S, { if x > 0 { 1 } else if x < 0 { -1 } else { 0 } }
    a_branch_without_else(x: i32) -> i32, SMALL, { let mut y = x; if y > 4 { y -= 4; } y }
    nested_branches(x: i32) -> i32, SMALL, { if x > 2 { if x > 10 { 1 } else { 2 } } else { if x < 0 { 3 } else { 4 } } }
    shadowing(x: i32) -> i32, SMALL, { let x = x + 1; let x = x * 2; { let x = 5; let _ = x; } x }
    a_block_is_an_expression(x: i32) -> i32, SMALL, { let y = { let a = x + 1; a * a }; y - 1 }
    deferred_initialization(x: i32) -> i32, SMALL, { let y; if x > 3 { y = 1; } else { y = 2; } y }
    a_while_loop(x: i32) -> i32, SMALL, { let mut n = x.abs(); let mut steps = 0; while n > 1 { n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 }; steps += 1; } steps }
    a_loop_with_a_value(x: i32) -> i32, SMALL, { let mut n = x; loop { n += 3; if n > 20 { break n * 2; } } }
    a_loop_that_continues(x: u32) -> u32, COUNTS, { let mut sum = 0; let mut i = 0; loop { i += 1; if i > x { break; } if i % 3 == 0 { continue; } sum += i; } sum }
    a_range(x: u32) -> u32, COUNTS, { let mut sum = 0; for i in 0..x { sum += i * i; } sum }
    an_inclusive_range(x: u32) -> u32, COUNTS, { let mut sum = 0; for i in 1..=x { sum = sum * 3 % 1001 + i; } sum }
    an_inclusive_range_to_the_greatest(x: u8) -> u32, U8S, { let mut count = 0; for _ in x..=u8::MAX { count += 1; } count }
    a_reversed_range(x: u32) -> u32, COUNTS, { let mut sum = 0; for i in (0..x).rev() { sum = sum * 3 % 1001 + i; } sum }
    a_range_with_a_stride(x: u32) -> u32, COUNTS, { let mut sum = 0; for i in (1..x).step_by(3) { sum = sum * 3 % 1001 + i; } sum }
    a_stride_past_the_end(x: u8) -> u32, U8S, { let mut sum = 0; for i in (x..250).step_by(100) { sum = sum * 3 % 1001 + i as u32; } sum }
    a_range_of_negatives(x: i32) -> i32, SMALL, { let mut sum = 0; for i in x..5 { sum += i; } sum }
    an_empty_range(x: i32) -> i32, SMALL, { let mut sum = 7; for i in 5..x.min(5) { sum += i; } sum }
    nested_loops(x: u32) -> u32, COUNTS, { let mut sum = 0; for i in 0..x { for j in i..x { sum += i * j; } } sum }
    breaking_out_of_two_loops(x: u32) -> u32, COUNTS, {
        let mut found = 0;
        'outer: for i in 0..40u32 {
            for j in 0..i {
                if i * j > x * 3 { found = i * 100 + j; break 'outer; }
                if j > 10 { continue 'outer; }
            }
        }
        found
    }
    a_labelled_block(x: i32) -> i32, SMALL, { let y = 'a: { if x > 5 { break 'a 1; } if x < 0 { break 'a 2; } 3 }; y * 10 }
    a_labelled_loop_with_a_value(x: i32) -> i32, SMALL, { let mut n = x; 'a: loop { loop { n += 1; if n % 5 == 0 { break 'a n; } if n % 2 == 0 { break; } } n += 2; } }
    a_while_with_a_pattern(x: u32) -> u32, COUNTS, { let mut left = x; let mut steps = 0; while let Some(next) = left.checked_sub(3) { left = next; steps += 1; } steps * 10 + left }
    matching_numbers(x: i32) -> i32, SMALL, { match x { 0 => 10, 1 | 2 => 20, 3..=8 => 30, -7 => 40, n if n > 15 => 50, n => n } }
    matching_ranges(x: u8) -> u8, U8S, { match x { ..=1 => 0, 2..100 => 1, 100.. => 2 } }
    matching_bools(x: i32) -> i32, SMALL, { match x > 2 { true => 1, false => 2 } }
    matching_tuples(x: i32) -> i32, SMALL, { match (x > 2, x % 2) { (true, 0) => 1, (true, _) => 2, (false, 1) => 3, (_, r) => 100 + r } }
    matching_options(x: u32) -> u32, COUNTS, { match x.checked_sub(4) { Some(0) => 100, Some(y) if y > 10 => y * 2, Some(y) => y, None => 200 } }
    matching_constants(x: i32) -> i32, I32S, { const LIMIT: i32 = 1000; match x { LIMIT => 1, i32::MAX => 2, _ => 3 } }
    binding_with_a_pattern(x: i32) -> i32, SMALL, { match x { n @ 2..=8 => n * 10, n => n } }
    matching_for_its_effect(x: i32) -> i32, SMALL, { let mut y = 1; match x { 0 => y = 2, 1 => { y += 5; } _ => {} } y }
    matches_of_patterns(x: i32) -> u8, SMALL, { matches!(x, 1 | 3..=5) as u8 + 2 * matches!(x.checked_sub(8), Some(y) if y > 0) as u8 }
    let_else(x: u32) -> u32, COUNTS, { let y = 'a: { let Some(y) = x.checked_sub(3) else { break 'a 99; }; y }; y }
    chains_of_conditions(x: u32) -> u32, COUNTS, { if let Some(y) = x.checked_sub(2) && y > 3 && let Some(z) = y.checked_sub(5) { z + 1 } else { 50 } }
    and_does_not_look_further(x: i32) -> i32, SMALL, { if x != 0 && 100 / x > 10 { 1 } else { 2 } }
    or_does_not_look_further(x: i32) -> i32, SMALL, { if x == 0 || 100 / x > 10 { 1 } else { 2 } }
    side_effects_in_conditions(x: i32) -> i32, SMALL, { let mut n = x; if { n += 1; n > 3 } && { n += 10; n > 15 } { n } else { -n } }
    operands_are_evaluated_from_left_to_right(x: i32) -> i32, SMALL, { let mut n = x; n + { n += 1; n * 10 } + n }
    a_receiver_is_evaluated_first(x: i32) -> i32, SMALL, { let mut n = x; n.wrapping_add({ n = 100; n }) + n }
    a_value_is_evaluated_before_its_place(x: usize) -> usize, [0, 1, 2], { let mut a = [1, 2, 3]; let mut i = x; a[i % 3] = { i += 1; i * 10 }; a[0] * 10_000 + a[1] * 100 + a[2] }
    a_copy_does_not_follow_its_original(x: i32) -> i32, SMALL, { let mut a = x; let b = a; a += 5; let c = a; a *= 2; a + 100 * b + 10_000 * c }
    swapped_by_a_tuple(x: i32) -> i32, SMALL, { let (mut a, mut b) = (x, 3); (a, b) = (b, a + b); (a, b) = (b, a + b); a * 100 + b }
    compound_assignments(x: i32) -> i32, SMALL, { let mut y = x; y += 5; y *= 3; y -= 1; y /= 2; y %= 17; y <<= 2; y >>= 1; y |= 1; y &= 0xff; y ^= 5; y }
    values_that_diverge(x: i32) -> i32, SMALL, { let mut sum = 0; for i in 0..10 { let y = match i % 3 { 0 => continue, 1 => i, _ => if i > x { break } else { i * 2 } }; sum += y; } sum }
    unit_values(x: i32) -> i32, SMALL, { let mut y = x; let () = if y > 3 { y = 1 } else { y = 2 }; y }
    closures(x: i32) -> i32, SMALL, { let twice = |y: i32| y * 2; let add = |a, b| a + b; add(twice(x), twice(3)) }
    closures_that_capture(x: i32) -> i32, SMALL, { let mut sum = x; let mut add = |y: i32| sum += y; add(3); add(4); sum }
    mapped_options(x: u32) -> u32, COUNTS, { x.checked_sub(3).map(|y| y * y + 1).unwrap_or(7) }
}

#[test]
fn a_kernel_returns_early() {
    #[gridloom::kernel]
    fn early(x: &[i32], out: gridloom::Out<i32>) {
        let Some((i, out)) = out.mine() else { return };
        *out = 1;
        if x[i] < 0 {
            return;
        }
        for k in 0..x[i] {
            *out += k;
            if *out > 20 {
                return;
            }
        }
        *out = -*out;
    }
    same("early", |x, out| early(x, out), early::load, &SMALL);
}
