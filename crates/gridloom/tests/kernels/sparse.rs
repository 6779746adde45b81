use gridloom::prelude::*;

use super::compare::same_bits;
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("sparse.ptx");

#[test]
fn a_sparse_matrix_times_a_vector_agrees_bit_for_bit() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(220);
        let (rows, columns) = (60, 80);
        let mut start = vec![0u32];
        for row in 0..rows {
            // Empty rows, short ones and ones longer than a warp.
            let len = if row % 7 == 0 { 0 } else { random.below(70) as u32 };
            start.push(start[row] + len);
        }
        let entries = start[rows] as usize;
        let column = random.vec(entries, |random| random.below(columns) as u32);
        let value = random.f32s(entries, -3.0, 3.0);
        let x = random.f32s(columns, -3.0, 3.0);
        let row = |r: usize| start[r] as usize..start[r + 1] as usize;
        let sum = |entries: &mut dyn Iterator<Item = usize>| {
            entries.fold(0.0f32, |sum, k| value[k].mul_add(x[column[k] as usize], sum))
        };

        let [start_buffer, column_buffer] = [bench.buffer(&start)?, bench.buffer(&column)?];
        let [value_buffer, x_buffer] = [bench.buffer(&value)?, bench.buffer(&x)?];
        let y = bench.zeros::<f32>(rows)?;
        let args = (&y, &start_buffer, &column_buffer, &value_buffer, &x_buffer, rows as u32);
        type Spmv = (PtrMut<f32>, Ptr<u32>, Ptr<u32>, Ptr<f32>, Ptr<f32>, u32);
        bench.run::<Spmv>("spmv_scalar", threads(rows), args)?;
        same_bits(&y.to_vec()?, &(0..rows).map(|r| sum(&mut row(r))).collect::<Vec<f32>>());

        bench.run::<Spmv>("spmv_warp", threads(32 * rows), args)?;
        let by_warp = |r: usize| {
            let mut lanes: Vec<f32> = (0..32).map(|lane| sum(&mut row(r).skip(lane).step_by(32))).collect();
            for mask in [16, 8, 4, 2, 1] {
                lanes = (0..32).map(|lane| lanes[lane] + lanes[lane ^ mask]).collect();
            }
            lanes[0]
        };
        same_bits(&y.to_vec()?, &(0..rows).map(by_warp).collect::<Vec<f32>>());
        Ok(())
    });
}
