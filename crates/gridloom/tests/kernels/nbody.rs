use gridloom::prelude::*;

use super::compare::same_bits;
use crate::support::{Bench, Random, for_each_device};

type Body = [f64; 4];

fn step(position: &[Body], velocity: &mut [Body], dt: f64, softening: f64) -> Vec<Body> {
    let mut next = Vec::new();
    for (p, v) in position.iter().zip(velocity) {
        let mut a = [0.0f64; 3];
        for q in position {
            let d = [q[0] - p[0], q[1] - p[1], q[2] - p[2]];
            let r2 = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul_add(d[2], softening)));
            let inverse = 1.0 / r2.sqrt();
            let s = q[3] * inverse * inverse * inverse;
            a.iter_mut().zip(d).for_each(|(a, d)| *a = d.mul_add(s, *a));
        }
        v.iter_mut().zip(a).for_each(|(v, a)| *v = a.mul_add(dt, *v));
        next.push([v[0].mul_add(dt, p[0]), v[1].mul_add(dt, p[1]), v[2].mul_add(dt, p[2]), p[3]]);
    }
    next
}

#[test]
fn gravity_between_bodies_agrees_bit_for_bit() {
    for_each_device(|device| {
        let bench = Bench::new(device, include_str!("nbody.ptx"))?;
        let n = 150;
        let mut random = Random::new(150);
        let mut position = random.vec(n, |random| {
            let mut axis = || random.f64(-1.0, 1.0);
            [axis(), axis(), axis(), random.f64(0.1, 1.0)]
        });
        let mut velocity = vec![[0.0; 4]; n];
        let mut now = bench.buffer(&position)?;
        let mut next = bench.zeros::<Body>(n)?;
        let velocities = bench.buffer(&velocity)?;
        for _ in 0..2 {
            bench.run::<(Ptr<Body>, PtrMut<Body>, PtrMut<Body>, u32, f64, f64)>(
                "nbody_step",
                LaunchConfig::new(n.div_ceil(128) as u32, 128),
                (&now, &velocities, &next, n as u32, 0.01, 0.01),
            )?;
            (now, next) = (next, now);
            position = step(&position, &mut velocity, 0.01, 0.01);
        }
        same_bits(now.to_vec()?.as_flattened(), position.as_flattened());
        same_bits(velocities.to_vec()?.as_flattened(), velocity.as_flattened());
        Ok(())
    });
}
