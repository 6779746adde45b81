//! Curves that fall over many powers of ten, drawn as SVG.

use std::fmt::Write;

/// A value for each pass, from the first on.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<f64>,
}

const SIZE: (f64, f64) = (760.0, 460.0);
const LEFT: f64 = 78.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 60.0;
/// Told apart by those who see few colours, and by their dashes in print.
const STYLES: [(&str, &str); 4] =
    [("#0072b2", ""), ("#d55e00", "7 4"), ("#009e73", "2 3"), ("#cc79a7", "10 3 2 3")];

/// Returns the picture, with a line at the value to reach.
pub(crate) fn draw(device: &str, curves: &[Curve], goal: f64) -> String {
    let values = || curves.iter().flat_map(|curve| &curve.points).copied().filter(|value| *value > 0.0);
    let lowest = values().fold(goal, f64::min).log10().floor();
    let highest = values().fold(1.0, f64::max).log10().ceil();
    let passes = curves.iter().map(|curve| curve.points.len()).max().unwrap_or(1).max(2);
    let x = |pass: f64| LEFT + (SIZE.0 - LEFT - RIGHT) * pass / passes as f64;
    let y = |log: f64| TOP + (SIZE.1 - TOP - BOTTOM) * (highest - log) / (highest - lowest);

    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"30\" font-size=\"18\" font-weight=\"bold\">Conjugate gradients on Poisson’s equation</text>\n\
         <text x=\"{LEFT}\" y=\"49\" fill=\"#555\">on {}</text>\n",
        escape(device)
    );
    let mut put =
        |line: std::fmt::Arguments<'_>| svg.write_fmt(line).expect("writing to a string cannot fail");

    // Even powers of ten.
    let mut power = (highest / 2.0).floor() * 2.0;
    while power >= lowest {
        let at = y(power);
        put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e3e3e3\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"10\">{}</tspan></text>\n",
            width - RIGHT,
            LEFT - 8.0,
            at + 5.0,
            format!("{power:.0}").replace('-', "−")
        ));
        power -= 2.0;
    }
    let step = round_step(passes);
    for pass in (0..=passes).step_by(step) {
        let at = x(pass as f64);
        put(format_args!(
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{0:.1}\" y2=\"{1:.1}\" stroke=\"#222\"/>\n\
             <text x=\"{at:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">{pass}</text>\n",
            height - BOTTOM,
            height - BOTTOM + 5.0,
            height - BOTTOM + 20.0
        ));
    }
    put(format_args!(
        "<path d=\"M{LEFT} {TOP} V{0} H{1}\" fill=\"none\" stroke=\"#222\"/>\n\
         <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"middle\">passes of the loop</text>\n\
         <text transform=\"translate(20 {4:.1}) rotate(-90)\" text-anchor=\"middle\">residual ‖b − A x‖ ÷ ‖b‖</text>\n",
        height - BOTTOM,
        width - RIGHT,
        (LEFT + width - RIGHT) / 2.0,
        height - 16.0,
        (TOP + height - BOTTOM) / 2.0
    ));
    put(format_args!(
        "<line x1=\"{LEFT}\" x2=\"{0}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#777\" stroke-dasharray=\"3 3\"/>\n\
         <text x=\"{2}\" y=\"{3:.1}\" fill=\"#555\">the goal</text>\n",
        width - RIGHT,
        y(goal.log10()),
        LEFT + 8.0,
        y(goal.log10()) - 6.0
    ));

    for (place, (curve, (colour, dashes))) in curves.iter().zip(STYLES.iter().cycle()).enumerate() {
        let mut path = format!("M{:.1} {:.1}", x(0.0), y(0.0));
        for (pass, value) in curve.points.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            write!(path, " L{:.1} {:.1}", x(pass as f64 + 1.0), y(value.log10()))
                .expect("writing to a string cannot fail");
        }
        let at = TOP + 12.0 + 20.0 * place as f64;
        put(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
             <line x1=\"{0}\" x2=\"{1}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
             <text x=\"{2}\" y=\"{3}\">{4} ({5} passes)</text>\n",
            width - RIGHT - 240.0,
            width - RIGHT - 206.0,
            width - RIGHT - 198.0,
            at + 4.5,
            escape(&curve.name),
            curve.points.len()
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

/// A round number that divides the axis into five to ten parts.
fn round_step(passes: usize) -> usize {
    let mut step = 1;
    for factor in [2, 5, 10, 20, 50, 100, 200, 500, 1000] {
        if passes / step <= 10 {
            break;
        }
        step = factor;
    }
    step
}

/// Text as it may stand in SVG.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
