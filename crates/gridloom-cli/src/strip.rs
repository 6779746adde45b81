//! A row of numbers as a row of coloured cells.

use std::io::IsTerminal;

/// Draws temperatures between 0 and `max`.
pub(crate) struct Strip {
    max: f32,
    columns: usize,
    colour: bool,
}

impl Strip {
    /// A strip of at most `columns` cells, coloured where standard output is a terminal that wants colours.
    pub(crate) fn new(max: f32, columns: usize) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Strip { max, columns, colour }
    }

    /// One line. Where there are more values than columns, each cell shows the mean of its share.
    pub(crate) fn line(&self, values: &[f32]) -> String {
        let cells = values.len().min(self.columns);
        let mut line = String::new();
        for cell in 0..cells {
            let share = &values[cell * values.len() / cells..(cell + 1) * values.len() / cells];
            let heat = (share.iter().sum::<f32>() / share.len() as f32 / self.max).clamp(0.0, 1.0);
            if self.colour {
                let [red, green, blue] = colour(heat);
                line.push_str(&format!("\x1b[48;2;{red};{green};{blue}m  "));
            } else {
                const SHADES: &[u8] = b" .:-=+*#%@";
                line.push(SHADES[(heat * (SHADES.len() - 1) as f32).round() as usize] as char);
            }
        }
        if self.colour {
            line.push_str("\x1b[0m");
        }
        line
    }
}

/// Dark blue through purple, red and orange to pale yellow: ordered by lightness, so that it also reads without colour vision.
fn colour(heat: f32) -> [u8; 3] {
    const STOPS: [[f32; 3]; 5] = [
        [13.0, 22.0, 58.0],
        [84.0, 24.0, 110.0],
        [187.0, 55.0, 84.0],
        [249.0, 142.0, 9.0],
        [252.0, 255.0, 190.0],
    ];
    let place = heat * (STOPS.len() - 1) as f32;
    let low = (place as usize).min(STOPS.len() - 2);
    let mix = place - low as f32;
    std::array::from_fn(|channel| (STOPS[low][channel] * (1.0 - mix) + STOPS[low + 1][channel] * mix) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_values_than_columns_are_averaged() {
        let strip = Strip { max: 1.0, columns: 2, colour: false };
        assert_eq!(strip.line(&[0.0, 0.0, 1.0, 1.0]), " @");
    }

    #[test]
    fn values_out_of_range_take_the_nearest_shade() {
        let strip = Strip { max: 1.0, columns: 8, colour: false };
        assert_eq!(strip.line(&[-5.0, 5.0, f32::NAN]).len(), 3);
    }

    #[test]
    fn colours_end_at_the_first_and_last_stop() {
        assert_eq!(colour(0.0), [13, 22, 58]);
        assert_eq!(colour(1.0), [252, 255, 190]);
    }
}
