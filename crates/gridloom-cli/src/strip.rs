//! A row of numbers as a row of coloured cells.

use crate::terminal::Terminal;

/// What is written in a cell with a coloured background.
const COLOURED_CELL: &str = "  ";

/// Draws temperatures between 0 and `max`.
pub(crate) struct Strip {
    max: f32,
    columns: usize,
    colour: bool,
}

impl Strip {
    /// A strip of at most `columns` cells that fits the terminal beside a label of `label` columns.
    pub(crate) fn new(max: f32, columns: usize, label: usize, terminal: Terminal) -> Self {
        let cell = if terminal.colour { COLOURED_CELL.len() } else { 1 };
        let room = terminal.columns.saturating_sub(label) / cell;
        Strip { max, columns: columns.min(room).max(1), colour: terminal.colour }
    }

    /// Returns one line. If there are more values than columns, each cell shows the mean of its
    /// share.
    pub(crate) fn line(&self, values: &[f32]) -> String {
        let cells = values.len().min(self.columns);
        let mut line = String::new();
        for cell in 0..cells {
            let share = &values[cell * values.len() / cells..(cell + 1) * values.len() / cells];
            let heat = (share.iter().sum::<f32>() / share.len() as f32 / self.max).clamp(0.0, 1.0);
            if self.colour {
                let [red, green, blue] = colour(heat);
                line.push_str(&format!("\x1b[48;2;{red};{green};{blue}m{COLOURED_CELL}"));
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

/// Returns a colour from dark blue through purple, red and orange to pale yellow. The scale is
/// ordered by lightness, so that it is readable without colour vision.
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
    fn a_strip_fits_a_narrow_terminal() {
        let terminal = |columns, colour| Terminal { columns, colour, rewrites: true };
        assert_eq!(Strip::new(1.0, 48, 9, terminal(20, false)).line(&[0.0; 100]).len(), 11);
        assert_eq!(Strip::new(1.0, 48, 9, terminal(20, true)).columns, 5);
        assert_eq!(Strip::new(1.0, 48, 9, terminal(200, true)).columns, 48);
        assert_eq!(Strip::new(1.0, 48, 9, terminal(3, true)).columns, 1);
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
