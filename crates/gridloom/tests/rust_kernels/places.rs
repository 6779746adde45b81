//! Values, references and closures, where a translation is easily wrong.

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::*;

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Pair {
    a: i32,
    b: [i32; 3],
}

#[device]
impl Pair {
    fn grow(&mut self, by: i32) -> &mut Self {
        self.a += by;
        self.b[1] -= by;
        self
    }
    fn b_mut(&mut self) -> &mut [i32; 3] {
        &mut self.b
    }
    fn largest(&self) -> i32 {
        let Self { a, b: [x, y, z] } = self;
        (*a).max(*x).max(*y).max(*z)
    }
    fn min(self, other: Self) -> Self {
        if self.a < other.a { self } else { other }
    }
    fn abs(&self) -> i32 {
        self.a.abs() + 1000
    }
    fn get(&self, i: usize) -> i32 {
        self.b[i % 3]
    }
    fn len(&self) -> usize {
        3
    }
    fn map(self, k: i32) -> Self {
        Pair { a: self.a * k, ..self }
    }
}

#[device]
fn fill(all: &mut [i32], with: i32) {
    for (i, v) in all.iter_mut().enumerate() {
        *v = with + i as i32;
    }
}

#[device]
fn total(all: &[i32]) -> i32 {
    let mut sum = 0;
    for v in all {
        sum += v;
    }
    sum
}

#[device]
fn bump(n: &mut i32, by: i32) -> i32 {
    let old = *n;
    *n += by;
    old
}

#[device]
fn pick<'a>(all: &'a [i32; 2], first: bool) -> &'a i32 {
    &all[if first { 0 } else { 1 }]
}

programs! {
    a_closure_that_moves_takes_the_value_of_then(x: i32) -> i32, SMALL, {
        let mut n = x;
        let f = move |k: i32| n * 10 + k;
        n += 5;
        f(1) + n
    }
    a_closure_that_moves_changes_its_own(x: i32) -> i32, SMALL, {
        let mut n = x;
        let mut f = move || { n += 1; n };
        let a = f();
        let b = f();
        n *= 2;
        a * 100 + b * 10 + n
    }
    a_closure_that_borrows_changes_the_variable(x: i32) -> i32, SMALL, {
        let mut n = x;
        let mut f = |by: i32| { n += by; n * 2 };
        let a = f(3);
        let b = f(4);
        a * 1000 + b * 10 + n
    }
    a_range_is_evaluated_once(x: i32) -> i32, SMALL, {
        let mut n = x.abs();
        let mut count = 0;
        for i in 0..n {
            n -= 1;
            count += i * n;
        }
        count * 100 + n
    }
    an_array_is_copied_where_it_is_assigned(x: i32) -> i32, SMALL, {
        let mut a = [x, 2, 3];
        let b = a;
        a[1] = 50;
        let mut c = a;
        c[0] = 9;
        a[0] + a[1] + b[1] * 3 + c[0] * 5 + c[1] * 7
    }
    a_name_of_an_array_is_copied_too(x: i32) -> i32, SMALL, {
        let a = [x, 2, 3];
        let b = a;
        let mut c = b;
        c[0] = 50;
        let (d, e) = (b, Some([x, 7]));
        let mut f = d;
        f[1] += 60;
        let mut g = e.unwrap();
        g[1] = 70;
        let p = Pair { a: x, b };
        let mut q = p;
        q.b[2] = 80;
        let mut r = p.b;
        r[0] -= 9;
        let keep = |z: [i32; 3]| z[0] + z[1];
        let s = keep(a) + keep(b);
        let t = if x > 2 { a } else { b };
        let mut u = t;
        u.reverse();
        *(&mut [u[0], 4][..]).first_mut().unwrap() = 3;
        std::mem::swap(&mut u[1], &mut bump(&mut 5, x));
        a[0] + b[0] * 3 + c[0] * 5 + d[1] * 7 + f[1] + e.map_or(0, |e| e[1]) * 11 + g[1] + p.b[2] * 13 + q.b[2] + r[0] + p.b[0]
            + s + t[0] + u[2] * 17 + u[1]
    }
    a_loop_over_a_copy_of_an_array(x: i32) -> i32, SMALL, {
        let mut a = [x, 2, 3, 4];
        let mut sum = 0;
        for v in a {
            a[3] += v;
            sum += v * a[3];
        }
        sum
    }
    a_struct_in_an_array_is_changed_in_place(x: i32) -> i32, SMALL, {
        let mut all = [Pair { a: x, b: [1, 2, 3] }; 3];
        let i = (x & 1) as usize;
        all[i].b[2] = 40;
        all[i + 1].grow(7).grow(1);
        let p = &mut all[2];
        p.a -= 3;
        p.b = [p.a, p.b[0], p.b[1]];
        all[0].b[2] + all[1].a * 3 + all[2].largest() * 5 + all[2].b[1] * 7
    }
    methods_named_like_those_of_numbers(x: i32) -> i32, SMALL, {
        let p = Pair { a: x, b: [4, 5, 6] };
        let q = Pair { a: 3, b: [7, 8, 9] };
        p.min(q).get(1) + p.abs() + p.len() as i32 + p.map(3).a * 100
    }
    references_that_are_returned(x: i32) -> i32, SMALL, {
        let mut p = Pair { a: x, b: [4, 5, 6] };
        p.b_mut()[1] = 70;
        *p.grow(1).b_mut() = [p.a, 8, 9];
        let (u, v) = (x * 2, 11);
        p.b[0] + p.b[1] + p.b[2] * *pick(&[u, v], x > 2)
    }
    slices_of_local_arrays(x: i32) -> i32, SMALL, {
        let mut a = [0; 6];
        fill(&mut a[1..5], x);
        fill(&mut a[..2], 100);
        let (left, right) = a.split_at_mut(3);
        left[0] += right[1];
        right[2] -= left[2];
        total(&a) + total(&a[2..]) * 3 + total(&a[..=2]) * 5
    }
    calls_in_arguments_are_in_order(x: i32) -> i32, SMALL, {
        let mut n = x;
        let a = bump(&mut n, 1) * 100 + bump(&mut n, 10) - n;
        let t = (bump(&mut n, 2), n, bump(&mut n, 3), n);
        let p = Pair { b: [bump(&mut n, 1), n, bump(&mut n, 1)], a: n };
        a + t.0 * 3 + t.1 * 5 + t.2 * 7 + t.3 * 11 + p.a * 13 + p.b[0] * 17 + p.b[1] * 19 + p.b[2] * 23
    }
    shadowing_in_every_place(x: i32) -> i32, SMALL, {
        let y = x + 1;
        let y = if let Some(y) = y.checked_mul(2) { let y = y + 1; y } else { y };
        let f = |y: i32| { let y = y * 3; y };
        let z = match y { y if y > 10 => y - 10, y => { let x = y; x + 1 } };
        let mut s = 0;
        for x in 0..z.min(5) { let z = x * 2; s += z; }
        f(y) + z * 100 + s + x
    }
    names_that_are_also_functions(x: i32) -> i32, SMALL, {
        let min = 3;
        let max = |a: i32, b: i32| a - b;
        let abs = x.abs();
        let len = [1, 2, 3].len() as i32;
        max(abs, min) + len
    }
    labels_that_are_used_twice(x: i32) -> i32, SMALL, {
        let mut n = 0;
        'a: for i in 0..5 {
            for j in 0..5 {
                if j == x { continue 'a; }
                if i * j > 6 { break 'a; }
                n += 1;
            }
            n += 100;
        }
        let v = 'a: {
            if n > 200 { break 'a n; }
            'b: loop {
                n += 7;
                if n % 5 == 0 { break 'b; }
                if n > 150 { break 'a n * 2; }
            }
            n + 1
        };
        v + n
    }
    a_condition_with_side_effects(x: i32) -> i32, SMALL, {
        let mut n = x;
        let t = (bump(&mut n, 1) > 2 && bump(&mut n, 2) > 3) || bump(&mut n, 4) > 5;
        let u = if bump(&mut n, 8) > 7 || !t { 1 } else { 2 };
        let w = t ^ (bump(&mut n, 16) % 2 == 0);
        let q = t & (bump(&mut n, 1) > 0) | w;
        n * 10 + t as i32 + u * 3 + w as i32 * 5 + q as i32 * 7
    }
    an_index_is_evaluated_after_the_value(x: i32) -> i32, SMALL, {
        let mut a = [1, 2, 3, 4];
        let mut i = 0usize;
        a[{ i += 1; i }] = { i += 1; i as i32 * 10 + x };
        a[i] += { i -= 1; 5 };
        a[0] + a[1] * 3 + a[2] * 5 + a[3] * 7 + i as i32
    }
    nested_options(x: i32) -> i32, SMALL, {
        let o: Option<Option<i32>> = if x < 0 { None } else if x < 3 { Some(None) } else { Some(Some(x)) };
        match o {
            None => -1,
            Some(None) => -2,
            Some(Some(v @ 3..=5)) => v,
            Some(Some(v)) if v % 2 == 0 => v * 2,
            Some(Some(_)) => 99,
        }
    }
    options_are_assigned_and_taken(x: i32) -> i32, SMALL, {
        let mut o = Some(x);
        let mut s = 0;
        while let Some(v) = o {
            s += v;
            o = if v > 0 { Some(v - 2) } else { None };
        }
        let mut p = Some(s);
        let q = p.take();
        let r = p.is_none();
        p = q.or(Some(4)).xor(None);
        let z = p.replace(5);
        if let Some(v) = &mut p { *v += 1; }
        s + r as i32 * 10 + p.unwrap() + z.unwrap_or_default() + q.zip(p).map_or(0, |(a, b)| a * b)
    }
    a_tuple_changes_part_by_part(x: i32) -> i32, SMALL, {
        let mut t = (x, (2.5f32, [1u8, 2]), true);
        t.0 += 1;
        t.1.0 *= 2.0;
        t.1.1[1] = t.1.1[0] + 7;
        t.2 = !t.2;
        let (a, (b, c), d) = t;
        let s = t;
        t = (0, (0.0, [0, 0]), false);
        a + b as i32 + c[1] as i32 + d as i32 + s.0 + t.0
    }
    variables_that_get_their_value_later(x: i32) -> i32, SMALL, {
        let a;
        let b: u8;
        if x > 2 { a = x * 2; b = 1; } else { b = 2; a = 7; }
        let c;
        loop { c = a + b as i32; break; }
        c * 3 + a
    }
    literals_are_of_the_type_that_they_become(x: u8) -> u64, U8S, {
        let k = 200;
        let y: u8 = x.wrapping_add(k);
        let m = 1 << 40;
        let n: u64 = m | y as u64;
        let big = 0xFFFF_FFFF_0000_0001;
        let f = 1e3;
        let g: f32 = f;
        let i = -1;
        let j: i64 = i;
        n ^ big ^ (k as u64) << 8 ^ g as u64 ^ j as u64 >> 3
    }
    shifts_of_every_type_of_distance(x: u32) -> u32, U32S, {
        let d = (x & 7) as u8;
        let e = (x >> 3 & 7) as i64;
        (x << d) ^ (x >> e) ^ (1u32 << (x & 31)) ^ ((x as i32) >> d) as u32 ^ ((x as u8 as i8) >> e) as u32
    }
    bytes_that_wrap_around(x: u8) -> i32, U8S, {
        let a = x.wrapping_mul(x).wrapping_add(77);
        let (b, over) = x.overflowing_sub(100);
        let c = x.wrapping_shl(x as u32);
        let d = (x as i8).wrapping_neg();
        let e = (x as i8).wrapping_abs();
        let f = x.wrapping_pow(3);
        let g = (x as i8).unsigned_abs();
        let h = x.isqrt();
        a as i32 + b as i32 * 3 + over as i32 * 7 + c as i32 * 11 + d as i32 * 13 + e as i32 * 17 + f as i32 * 19 + g as i32 * 23 + h as i32
    }
    arrays_of_tuples_of_arrays(x: i32) -> i32, SMALL, {
        let mut all = (x, [[1i16; 2]; 2], [x; 2]);
        all.1[0][1] = 300;
        all.1[1] = [x as i16, 7];
        let (_, [first, _], [n, m]) = all;
        first[0] as i32 + n + m + all.1[1][0] as i32
    }
    array_methods(x: i32) -> i32, SMALL, {
        let mut a = [5, x, 3, 9];
        a.reverse();
        a.fill(2);
        a[1] = x;
        a.swap(1, 3);
        let b = a.map(|v| v * 2 + 1);
        let has = a.contains(&3) as i32;
        let f = *a.first().unwrap() + *b.last().unwrap();
        let same = (a == [2, 2, 2, 3]) as i32;
        let mut c = [0; 4];
        c.copy_from_slice(&b);
        f + has * 10 + same * 100 + c[2] + c.iter().max().copied().unwrap_or(0) + a.is_empty() as i32
    }
    floats_compare_and_choose(x: f32) -> f32, F32S, {
        let y = if x > 0.5 || x.is_nan() { x } else { -x };
        let z = match x { v if v < 0.0 => 1.0, 0.0 => 2.0, 0.5..=1.5 => 3.0, _ => 4.0 };
        let w = x.max(1.0).min(100.0).copysign(-2.0) + x.signum();
        let c = x.clamp(-1.0, 2.0);
        if y == z { 0.25 } else { z + w + c }
    }
    an_expression_in_a_statement_position(x: i32) -> i32, SMALL, {
        let mut n = 0;
        if x > 3 { n += 1 } else { n -= 1 };
        match x { 0 => n = 5, 1 | 2 => { n = 6 } _ => () }
        { n += 1; }
        let () = { n *= 2 };
        let _ = bump(&mut n, 3);
        _ = n;
        (n, _) = (n + 1, n);
        [n, _] = [n + 1, 0];
        n
    }
    literals_that_are_cast(x: u64) -> u64, U64S, {
        let a = 0xFFFF_FFFF as u64 + 3_000_000_000 as u64;
        let b = (-1i8 as u8) as u64 + (-1) as i64 as u64 % 1000;
        let c = 0.1 as f32;
        let d = 16_777_217.000_000_01 as f32;
        let e = 3.9 as u8;
        x ^ a ^ b << 8 ^ (c.to_bits() as u64) << 16 ^ d.to_bits() as u64 ^ e as u64
    }
    sums_of_nothing(x: f32) -> f32, F32S, {
        let few = [x, 1.0, 2.0];
        let none: f32 = few.iter().filter(|v| v.is_nan() && **v == 0.0).sum();
        let product: f32 = few.iter().skip(3).product();
        none.to_bits() as f32 + product + few[..1].iter().sum::<f32>()
    }
    conditions_of_the_build(x: i32) -> i32, SMALL, {
        let mut n = x;
        if cfg!(debug_assertions) { n += 1; }
        if cfg!(target_pointer_width = "64") && n > 2 { n *= 2; }
        n
    }
    methods_with_closures_in_variables(x: i32) -> i32, SMALL, {
        let double = |v: i32| v * 2;
        let is_odd = |v: &i32| *v % 2 != 0;
        let f = if x > 3 { Some(x) } else { None };
        f.map(double).unwrap_or(7) + [x, 3, 5].iter().copied().filter(is_odd).map(double).sum::<i32>()
    }
    slices_of_arrays_in_structs(x: i32) -> i32, SMALL, {
        let mut all = [Pair { a: x, b: [1, 2, 3] }; 4];
        all[1..3][1].b[1..].fill(x);
        for p in &mut all[2..] { p.a += 10; }
        for p in all[..2].iter_mut() { p.b.reverse(); }
        let (left, right) = all.split_at(2);
        left[0].b[0] + left[1].b[2] * 3 + right[0].b[1] * 5 + right[1].a * 7 + total(&right[0].b) + right.len() as i32
            + right.iter().map(|p| p.a).sum::<i32>()
    }
    slices_of_constants(x: i32) -> i32, SMALL, {
        const TABLE: [i32; 6] = [1, 4, 9, 16, 25, 36];
        let start = (x & 3) as usize;
        total(&TABLE[start..]) + TABLE[..start].iter().sum::<i32>() * 3 + total(&TABLE) + TABLE.contains(&x) as i32
            + *TABLE[1..=start + 1].last().unwrap_or(&7)
    }
    variables_that_are_slices(x: i32) -> i32, SMALL, {
        let a = [x, 2, 3, 4, 5];
        let b = [7, x];
        let mut s = &a[..];
        let mut n = 0;
        while let [first, rest @ ..] = s {
            n = n * 3 + *first;
            s = rest;
            if rest.len() == 1 { break; }
        }
        let t = if x > 3 { &a[1..] } else { &b[..] };
        let mut u: &[i32] = &b;
        if x % 2 == 0 { u = &a[..3]; }
        n + t[t.len() - 1] * 7 + u.iter().sum::<i32>() + total(u) * 11 + total(&[x, x]) + t.len() as i32
    }
    parts_to_write(x: i32) -> i32, SMALL, {
        let mut a = [1, 2, 3, 4, 5, 6];
        {
            let (l, r) = a.split_at_mut(3);
            for (p, q) in l.iter_mut().zip(r.iter()) { *p += q * x; }
            r[2] = l[0];
            if let Some(last) = r.last_mut() { *last += 1; }
            if let Some(v) = l.get_mut((x & 3) as usize) { *v = -5; }
        }
        for c in a.chunks_exact_mut(2) { c.swap(0, 1); }
        let w: i32 = a.windows(2).map(|p| p[0] * p[1]).sum();
        let k = (x & 1) as usize;
        a[k..k + 3].fill(x);
        let first = a[0];
        a[3..].copy_from_slice(&[first, 8, 9]);
        w + a.iter().enumerate().map(|(i, v)| i as i32 * v).sum::<i32>() + a.contains(&x) as i32
    }
    constants_inside(x: i32) -> i32, SMALL, {
        const N: usize = 4;
        const TABLE: [[i32; 2]; N] = [[1, 2], [3, 4], [5, 6], [7, 8]];
        const HALF: usize = N / 2;
        let a = [x; N * 2 - 1];
        let i = (x as usize) % N;
        TABLE[i][HALF - 1] + a[HALF + N - 1] + a.len() as i32 + i32::MAX.count_ones() as i32 + u8::BITS as i32
    }
}

#[device]
impl PartialEq for Token {
    fn eq(&self, other: &Token) -> bool {
        match (self.weight(), other.weight()) {
            (a, b) if a == b => true,
            (7 | 8, 7 | 8) => true,
            _ => false,
        }
    }
}
#[derive(Clone, Copy, Debug, KernelType)]
#[repr(u8)]
enum Token {
    Number(f32),
    Op { kind: u8, weight: i32 },
    Paren(bool),
    End,
}

#[device]
impl Token {
    const FIRST: Token = Token::End;
    fn next(&mut self) {
        match self {
            Token::Number(n) => *n += 1.0,
            Token::Op { kind, .. } => *kind ^= 1,
            Token::Paren(open) => *open = !*open,
            Token::End => *self = Token::Number(0.5),
        }
    }
    fn weight(self) -> i32 {
        match self {
            Token::Number(n) if n > 2.0 => 1,
            Token::Number(_) => 2,
            Token::Op { kind: 0 | 2, weight } => weight,
            Token::Op { weight: w @ 0..=3, .. } => w * 100,
            Token::Op { .. } => -1,
            Token::Paren(true) => 7,
            Token::Paren(_) => 8,
            Token::End => 9,
        }
    }
}

#[kernel]
fn tokens(x: &[i32], out: Out<i32>) {
    let Some((i, out)) = out.mine() else { return };
    let mut t = match x[i].rem_euclid(4) {
        0 => Token::Number(x[i] as f32),
        1 => Token::Op { kind: (x[i] & 3) as u8, weight: x[i] },
        2 => Token::Paren(x[i] > 4),
        _ => Token::FIRST,
    };
    let before = t;
    t.next();
    let mut again = [t, before];
    again[1].next();
    *out = t.weight() * 1000
        + before.weight()
        + (t == again[1]) as i32 * 7
        + matches!(again[0], Token::Number(n) if n > 1.0) as i32;
}

#[test]
fn enums_that_are_changed_in_place() {
    same("tokens", |x, out| tokens(x, out), tokens::load, &SMALL);
}
