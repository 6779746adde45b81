//! Whole kernels, as people write them who have read the guide.

use gridloom::{KernelType, Out, device, kernel};

use crate::harness::same;

#[derive(Clone, Copy, Debug, PartialEq, KernelType)]
struct Complex {
    re: f32,
    im: f32,
}
#[device]
impl Complex {
    const ZERO: Complex = Complex { re: 0.0, im: 0.0 };
    fn new(re: f32, im: f32) -> Self {
        Self { re, im }
    }
    fn norm_sqr(&self) -> f32 {
        self.re * self.re + self.im * self.im
    }
    fn square(self) -> Self {
        self * self
    }
}
#[device]
impl std::ops::Add for Complex {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Complex::new(self.re + o.re, self.im + o.im)
    }
}
#[device]
impl std::ops::Mul for Complex {
    type Output = Complex;
    fn mul(self, o: Complex) -> Complex {
        Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
}
#[device]
impl std::ops::AddAssign for Complex {
    fn add_assign(&mut self, o: Self) {
        self.re += o.re;
        self.im += o.im;
    }
}
#[device]
impl std::ops::Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Complex::new(-self.re, -self.im)
    }
}

#[kernel]
fn julia(x: &[f32], out: Out<u32>) {
    let Some((i, out)) = out.mine() else { return };
    let c = Complex::new(-0.4, 0.6);
    let mut z = Complex { re: x[i], ..Complex::ZERO };
    let mut n = 0u32;
    while z.norm_sqr() <= 4.0 && n < 100 {
        z = z.square() + c;
        n += 1;
    }
    let mut w = -z;
    w += c;
    *out = n + if w.re.is_nan() { 1 } else { 0 };
}

#[derive(Clone, Copy, KernelType)]
#[repr(u8)]
enum Shape {
    Circle(f32),
    Rect { w: f32, h: f32 },
    Empty,
}
#[device]
impl Shape {
    fn area(&self) -> f32 {
        match *self {
            Shape::Circle(r) => std::f32::consts::PI * r * r,
            Shape::Rect { w, h } if w == h => w * w,
            Shape::Rect { w, h } => w * h,
            Shape::Empty => 0.0,
        }
    }
    fn of(i: usize) -> Self {
        match i % 3 {
            0 => Self::Circle(i as f32),
            1 => Self::Rect { w: i as f32, h: 2.0 },
            _ => Self::Empty,
        }
    }
}
#[kernel]
fn shapes(x: &[f32], out: Out<f32>) {
    if let Some((i, out)) = out.mine() {
        let s = Shape::of(i);
        *out = s.area() + x[i] + if matches!(s, Shape::Empty) { 1.0 } else { 0.0 };
    }
}

#[derive(Clone, Copy, KernelType)]
struct Rng {
    s: u64,
}
#[device]
impl Rng {
    fn new(seed: u64) -> Rng {
        Rng { s: seed ^ 0x5DEECE66D }
    }
    fn next(&mut self) -> u32 {
        self.s = self.s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let xs = (((self.s >> 18) ^ self.s) >> 27) as u32;
        xs.rotate_right((self.s >> 59) as u32)
    }
    fn uniform(&mut self) -> f32 {
        (self.next() >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }
}
#[kernel]
fn pi(x: &[u64], out: Out<f32>) {
    if let Some((i, o)) = out.mine() {
        let mut rng = Rng::new(x[i]);
        let mut hits = 0;
        for _ in 0..64 {
            let (a, b) = (rng.uniform(), rng.uniform());
            if a * a + b * b < 1.0 {
                hits += 1;
            }
        }
        *o = 4.0 * hits as f32 / 64.0;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, KernelType)]
#[repr(u32)]
enum Op {
    Push = 1,
    Add = 2,
    Mul = 5,
    Dup,
}
#[device]
fn decode(v: i32) -> Option<Op> {
    Some(match v {
        1 => Op::Push,
        2 => Op::Add,
        5 => Op::Mul,
        6 => Op::Dup,
        _ => return None,
    })
}
#[kernel]
fn vm(x: &[i32], out: Out<i64>) {
    const CODE: [i32; 9] = [1, 6, 5, 1, 2, 9, 6, 2, 0];
    let Some((i, o)) = out.mine() else { return };
    let mut stack = [0i64; 8];
    let mut sp = 0usize;
    let mut pc = 0;
    let result = 'run: loop {
        if pc >= CODE.len() {
            break 'run stack[0];
        }
        let op = decode(CODE[pc]);
        pc += 1;
        match op {
            Some(Op::Push) => {
                stack[sp] = x[i] as i64;
                sp += 1;
            }
            Some(op @ (Op::Add | Op::Mul)) => {
                let (a, b) = (stack[sp - 1], stack[sp - 2]);
                sp -= 1;
                stack[sp - 1] = if op == Op::Add { a + b } else { a.wrapping_mul(b) };
            }
            Some(Op::Dup) => {
                let top = stack[sp - 1];
                stack[sp] = top;
                sp += 1
            }
            None if pc > 8 => break stack[sp - 1],
            None => continue,
        }
        if sp > 7 {
            break -1;
        }
    };
    *o = result + Op::Mul as i64;
}

#[derive(Clone, Copy, KernelType)]
struct W {
    a: i32,
    b: [i32; 2],
}
#[device]
impl W {
    fn bump(&mut self) -> i32 {
        self.a += 1;
        self.b[0] += 2;
        self.a
    }
    fn take(mut self) -> i32 {
        self.a = 100;
        self.a
    }
}
#[device]
fn early(v: i32) -> i32 {
    for k in 0..10 {
        if k == v {
            return k * 2;
        }
    }
    -1
}
#[device]
fn side(a: &mut i32) -> i32 {
    *a += 1;
    *a
}
#[device]
fn pair(v: i32) -> (i32, [i32; 2]) {
    (v, [v + 1, v + 2])
}
#[kernel]
fn order(x: &[i32], out: Out<i32>) {
    let Some((i, o)) = out.mine() else { return };
    let mut n = x[i];
    let s = side(&mut n) * 10 + side(&mut n);
    let arr = [side(&mut n), side(&mut n), n];
    let w = W { a: side(&mut n), b: [side(&mut n), n] };
    let mut w2 = w;
    let t = (w2.bump(), w2.bump(), w2.a, w2.b[0]);
    let tk = w2.take() + w2.a;
    let mut v = 5;
    let add = |k: i32| k + 5;
    v = add(v) + {
        v = 7;
        v
    };
    let z = v + {
        v += 1;
        v
    } * 2;
    let idx = {
        let q = side(&mut n) as usize % 3;
        q
    };
    let mut ar = [1, 2, 3];
    ar[{
        v += 1;
        v as usize % 3
    }] += side(&mut v);
    let (p, [q, r]) = pair(n);
    let short = n > 1000 && side(&mut n) > 0 || side(&mut n) == 12345;
    let m = match side(&mut n) {
        k if side(&mut n) < -100 => k,
        k => k + side(&mut n),
    };
    let mut cnt = 0;
    while side(&mut cnt) < 5 && cnt != 100 {}
    let old = std::mem::replace(&mut n, 3);
    let u = if short { 1 } else { early(n) };
    *o = s.wrapping_mul(31)
        ^ arr[0]
        ^ arr[1] << 3
        ^ arr[2] << 5
        ^ w.a
        ^ w.b[0] << 2
        ^ w.b[1]
        ^ t.0
        ^ t.1 << 4
        ^ t.2
        ^ t.3 << 6
        ^ tk
        ^ v << 7
        ^ z
        ^ arr[idx]
        ^ ar[0] << 8
        ^ ar[1] << 9
        ^ ar[2] << 10
        ^ p
        ^ q
        ^ r
        ^ m
        ^ cnt << 11
        ^ old
        ^ u;
}

#[device]
fn lerp(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}
#[device]
fn smoothstep(t: f32) -> f32 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
#[device]
fn hash2(x: i32, y: i32) -> f32 {
    let mut h = (x as u32).wrapping_mul(374761393).wrapping_add((y as u32).wrapping_mul(668265263));
    h = (h ^ (h >> 13)).wrapping_mul(1274126177);
    (h ^ h >> 16) as f32 / u32::MAX as f32
}
#[kernel]
fn noise(x: &[f32], out: Out<f32>) {
    let Some((i, o)) = out.mine() else { return };
    let (px, py) = (x[i] * 3.0, i as f32 * 0.25);
    let mut total = 0.0;
    let mut amp = 1.0;
    for octave in 0..4u32 {
        let f = (1 << octave) as f32;
        let (fx, fy) = (px * f, py * f);
        let (ix, iy) = (fx.floor() as i32, fy.floor() as i32);
        let (tx, ty) = (smoothstep(fx - ix as f32), smoothstep(fy.fract()));
        let a = lerp(hash2(ix, iy), hash2(ix + 1, iy), tx);
        let b = lerp(hash2(ix, iy + 1), hash2(ix + 1, iy + 1), tx);
        total += amp * lerp(a, b, ty);
        amp *= 0.5;
    }
    *o = total;
}
#[derive(Clone, Copy, KernelType)]
struct Stack<const N: usize> {
    data: [u32; N],
    len: usize,
}
#[device]
impl<const N: usize> Stack<N> {
    fn new() -> Self {
        Self { data: [0; N], len: 0 }
    }
    fn push(&mut self, v: u32) -> bool {
        if self.len == N {
            return false;
        }
        self.data[self.len] = v;
        self.len += 1;
        true
    }
    fn pop(&mut self) -> Option<u32> {
        if self.len == 0 {
            None
        } else {
            self.len -= 1;
            Some(self.data[self.len])
        }
    }
    fn is_empty(&self) -> bool {
        self.len == 0
    }
}
#[kernel]
fn dfs(x: &[u32], out: Out<u32>) {
    if let Some((i, o)) = out.mine() {
        let mut st = Stack::<16>::new();
        st.push(x[i] % 7 + 1);
        let mut visited = 0u64;
        let mut order = 0u32;
        while let Some(v) = st.pop() {
            if visited >> v & 1 == 1 {
                continue;
            }
            visited |= 1 << v;
            order = order.wrapping_mul(31).wrapping_add(v);
            for w in [v * 2, v * 2 + 1, v / 2] {
                if w > 0 && w < 20 && !st.push(w) {
                    break;
                }
            }
        }
        *o = order ^ visited.count_ones() << 24 ^ st.is_empty() as u32;
    }
}
#[device]
trait Metric {
    const WEIGHT: f32;
    fn dist(&self, a: [f32; 2], b: [f32; 2]) -> f32;
    fn scaled(&self, a: [f32; 2], b: [f32; 2]) -> f32 {
        Self::WEIGHT * self.dist(a, b)
    }
}
#[derive(Clone, Copy, KernelType)]
struct Euclid;
#[derive(Clone, Copy, KernelType)]
struct Minkowski {
    p: f32,
}
#[device]
impl Metric for Euclid {
    const WEIGHT: f32 = 2.0;
    fn dist(&self, a: [f32; 2], b: [f32; 2]) -> f32 {
        ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
    }
}
#[device]
impl Metric for Minkowski {
    const WEIGHT: f32 = 0.5;
    fn dist(&self, a: [f32; 2], b: [f32; 2]) -> f32 {
        (a[0] - b[0]).abs() * self.p + (a[1] - b[1]).abs()
    }
}
#[device]
fn nearest<M: Metric + Copy>(m: M, p: [f32; 2], x: &[f32]) -> (usize, f32) {
    let mut best = (usize::MAX, f32::INFINITY);
    for (k, q) in x.windows(2).enumerate() {
        let d = m.scaled(p, [q[0], q[1]]);
        if d < best.1 {
            best = (k, d);
        }
    }
    best
}
#[kernel]
fn metrics(x: &[f32], out: Out<f32>) {
    if let Some((i, o)) = out.mine() {
        let p = [x[i] + 0.1, -x[i]];
        let (a, da) = nearest(Euclid, p, x);
        let (b, db) = nearest(Minkowski { p: 1.5 }, p, x);
        *o = a as f32 + da * 10.0 + b as f32 * 100.0 + db;
    }
}
#[kernel]
fn bytes(x: &[u32], out: Out<u32>) {
    if let Some((i, o)) = out.mine() {
        let [a, b, c, d] = x[i].to_le_bytes();
        let r = u32::from_be_bytes([a, b, c, d]);
        *o = r ^ u32::from_le_bytes([d, d, a, b]) ^ (x[i] as u16).to_be_bytes()[0] as u32;
    }
}
#[kernel]
fn early_exit(x: &[i32], out: Out<i32>) {
    let n = x.len();
    let Some((i, o)) = out.mine() else { return };
    if i + 1 >= n {
        *o = -1;
        return;
    }
    let (Some(a), Some(b)) = (x.get(i), x.get(i + 1)) else {
        *o = -2;
        return;
    };
    if a > b {
        *o = a - b;
        return;
    }
    *o = if *a == *b { 0 } else { b - a };
}
#[kernel]
fn ranges(x: &[u32], out: Out<u32>) {
    if let Some((i, o)) = out.mine() {
        let v = x[i] % 50;
        let mut s = 0;
        for k in (0..v).step_by(7) {
            s += k;
        }
        for k in (3..=v).rev().take(4) {
            s = s * 2 + k;
        }
        for (k, w) in (0..5).zip(10..) {
            s += k * w;
        }
        s += (1..=v).filter(|k| v % k == 0).count() as u32;
        s += (0..v).map(|k| k * k % 11).max().unwrap_or(3);
        s += (2..v).all(|k| v % k != 0) as u32;
        if (10..20).contains(&v) {
            s += 1000;
        }
        *o = s;
    }
}

const FLOATS: [f32; 12] = [0.0, 1.5, -0.25, 3.75, -2.0, 0.125, 2.5, -3.5, 0.75, 1.0, -1.0, 2.25];
const INTEGERS: [i32; 12] = [-7, 7, -2, 12, 3, 17, 8, -1, 13, 4, 0, 9];
const WORDS: [u32; 12] = [0, 1, 7, 255, 65_536, 0x1234_5678, 0x8000_0000, u32::MAX, 3, 12, 99, 1 << 20];
const SEEDS: [u64; 12] = [0, 1, 12_345, 1 << 40, u64::MAX, 7, 8, 9, 10, 11, 12, 13];

macro_rules! kernels {
    ($($kernel:ident($input:expr), $name:ident;)*) => {$(
        #[test]
        fn $name() {
            same(stringify!($kernel), |x, out| $kernel(x, out), $kernel::load, &$input);
        }
    )*};
}
kernels! {
    julia(FLOATS), a_set_of_complex_numbers;
    shapes(FLOATS), areas_of_shapes;
    pi(SEEDS), random_numbers;
    vm(INTEGERS), a_stack_machine;
    order(INTEGERS), an_order_of_evaluation;
    noise(FLOATS), noise_of_several_octaves;
    dfs(WORDS), a_search_with_a_stack;
    metrics(FLOATS), distances_of_several_kinds;
    bytes(WORDS), bytes_of_numbers;
    early_exit(INTEGERS), returns_in_many_places;
    ranges(WORDS), ranges_and_their_adaptors;
}
