use gridloom::prelude::*;

use super::compare::within;
use super::threads;
use crate::support::{Bench, Random, for_each_device};

fn normal(d: f64) -> f64 {
    let k = 1.0 / (1.0 + 0.2316419 * d.abs());
    let polynomial =
        k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    let tail = (-0.5 * d * d).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if d > 0.0 { 1.0 - tail } else { tail }
}

fn black_scholes(price: f64, strike: f64, years: f64, rate: f64, volatility: f64) -> (f64, f64) {
    let sigma = volatility * years.sqrt();
    let d1 = ((price / strike).ln() + (rate + volatility * volatility / 2.0) * years) / sigma;
    let (n1, n2) = (normal(d1), normal(d1 - sigma));
    let discounted = strike * (-rate * years).exp();
    (price * n1 - discounted * n2, discounted * (1.0 - n2) - price * (1.0 - n1))
}

#[test]
fn option_prices_agree_with_black_and_scholes_in_both_variants() {
    for_each_device(|device| {
        for ptx in [include_str!("finance.ptx"), include_str!("finance.fast.ptx")] {
            let bench = Bench::new(device, ptx)?;
            let mut random = Random::new(70);
            let n = 300;
            let price = random.f32s(n, 50.0, 150.0);
            let strike = random.f32s(n, 50.0, 150.0);
            let years = random.f32s(n, 0.25, 5.0);
            let (rate, volatility) = (0.02f32, 0.3f32);
            let (call, put) = (bench.zeros::<f32>(n)?, bench.zeros::<f32>(n)?);
            bench.run::<(PtrMut<f32>, PtrMut<f32>, Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, f32, f32)>(
                "black_scholes",
                threads(n),
                (
                    &call,
                    &put,
                    &bench.buffer(&price)?,
                    &bench.buffer(&strike)?,
                    &bench.buffer(&years)?,
                    n as u32,
                    rate,
                    volatility,
                ),
            )?;
            for (i, (call, put)) in call.to_vec()?.iter().zip(put.to_vec()?).enumerate() {
                let [p, s, y] = [price[i], strike[i], years[i]].map(f64::from);
                let expected = black_scholes(p, s, y, f64::from(rate), f64::from(volatility));
                within(&format!("call {i}"), f64::from(*call), expected.0, 1e-3, 0.0);
                within(&format!("put {i}"), f64::from(put), expected.1, 1e-3, 0.0);
            }
        }
        Ok(())
    });
}
