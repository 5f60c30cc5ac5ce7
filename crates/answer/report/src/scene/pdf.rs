//! A scene as a PDF of one page (ISO 32000-1), with one point for each unit of the scene. The font is Helvetica, which every reader
//! has; characters that are not in Latin-1 become `?`.

use super::{SceneShape, TextAnchor, VectorScene};
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// Widths of Helvetica's letters from space to tilde, in thousandths of the size (Adobe's font metrics).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// The width of every other character, in the same unit.
const USUAL: u16 = 556;

/// The scene as PDF.
pub(crate) fn pdf(scene: &VectorScene) -> Vec<u8> {
    let mut drawn = String::new();
    // The origin of a PDF page is at the bottom, that of the scene at the top.
    let _ = writeln!(drawn, "1 0 0 -1 0 {} cm", scene.height);
    let size = scene.measure.letters();
    for shape in &scene.shapes {
        let _ = write_shape(&mut drawn, shape, size);
    }
    let title = literal(&scene.title);
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 5 0 R \
             /Resources << /Font << /F 4 0 R >> /ExtGState << {}>> >> >>",
            scene.width,
            scene.height,
            opacities(scene)
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{drawn}endstream", drawn.len()),
        format!("<< /Title {title} >>"),
    ];
    file(&objects)
}

/// The opacities of areas, each by its name.
fn opacities(scene: &VectorScene) -> String {
    let areas = scene.shapes.iter().filter_map(|shape| match shape {
        SceneShape::Area { cover, .. } => Some(percent(*cover)),
        _ => None,
    });
    let each = areas.collect::<BTreeSet<u32>>().into_iter();
    let opacity =
        |percent: u32| format!("/C{percent} << /ca {:.2} >> ", f64::from(percent) / 100.0);
    each.map(opacity).collect()
}

fn percent(cover: f32) -> u32 {
    (cover * 100.0).round() as u32
}

/// A PDF file of these objects: the first is the catalogue, the last the document information.
fn file(objects: &[String]) -> Vec<u8> {
    let mut out = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (at, object) in objects.iter().enumerate() {
        let _ = writeln!(places, "{:010} 00000 n ", out.len());
        let _ = writeln!(out, "{} 0 obj\n{object}\nendobj", at + 1);
    }
    let (table, count) = (out.len(), objects.len() + 1);
    let _ = write!(
        out,
        "xref\n0 {count}\n0000000000 65535 f \n{places}trailer\n<< /Size {count} /Root 1 0 R /Info {} 0 R >>\n\
         startxref\n{table}\n%%EOF\n",
        objects.len()
    );
    out.into_bytes()
}

fn write_shape(out: &mut String, shape: &SceneShape, size: f32) -> fmt::Result {
    match shape {
        SceneShape::Rect {
            x,
            y,
            width,
            height,
            colour,
        } => writeln!(
            out,
            "{} rg {x:.2} {y:.2} {width:.2} {height:.2} re f",
            rgb(*colour)
        ),
        SceneShape::Line {
            points,
            colour,
            width,
            dashes,
        } => {
            let dashes: Vec<String> = dashes.iter().map(f32::to_string).collect();
            let dashes = dashes.join(" ");
            write!(out, "{} RG {width} w [{dashes}] 0 d", rgb(*colour))?;
            write_path(out, points)?;
            writeln!(out, " S")
        }
        SceneShape::Area {
            points,
            colour,
            cover,
        } => {
            write!(out, "q /C{} gs {} rg", percent(*cover), rgb(*colour))?;
            write_path(out, points)?;
            writeln!(out, " f Q")
        }
        // A dot is a stroke of no length with round ends.
        SceneShape::Dot {
            x,
            y,
            radius,
            colour,
        } => writeln!(
            out,
            "{} RG {} w [] 0 d 1 J {x:.2} {y:.2} m {x:.2} {y:.2} l S 0 J",
            rgb(*colour),
            2.0 * radius
        ),
        SceneShape::Text { text, .. } | SceneShape::Upwards { text, .. } if text.is_empty() => {
            Ok(())
        }
        SceneShape::Text { .. } | SceneShape::Upwards { .. } => write_text(out, shape, size),
    }
}

/// Writes a text; nothing of another shape.
fn write_text(out: &mut String, shape: &SceneShape, size: f32) -> fmt::Result {
    match shape {
        SceneShape::Text {
            x,
            y,
            anchor,
            colour,
            text,
        } => {
            let left = x - match anchor {
                TextAnchor::Start => 0.0,
                TextAnchor::Middle => size * width(text) / 2.0,
                TextAnchor::End => size * width(text),
            };
            writeln!(
                out,
                "BT {} rg /F {size} Tf 1 0 0 -1 {left:.2} {y:.2} Tm {} Tj ET",
                rgb(*colour),
                literal(text)
            )
        }
        SceneShape::Upwards { x, y, colour, text } => {
            let below = y + size * width(text) / 2.0;
            writeln!(
                out,
                "BT {} rg /F {size} Tf 0 -1 -1 0 {x:.2} {below:.2} Tm {} Tj ET",
                rgb(*colour),
                literal(text)
            )
        }
        _ => Ok(()),
    }
}

fn write_path(out: &mut String, points: &[(f32, f32)]) -> fmt::Result {
    for (at, (x, y)) in points.iter().enumerate() {
        write!(out, " {x:.2} {y:.2} {}", if at == 0 { "m" } else { "l" })?;
    }
    Ok(())
}

fn rgb(colour: u32) -> String {
    let [_, red, green, blue] = colour.to_be_bytes();
    let part = |value: u8| f32::from(value) / 255.0;
    format!("{:.3} {:.3} {:.3}", part(red), part(green), part(blue))
}

/// The width of a text, in sizes of its letters.
fn width(text: &str) -> f32 {
    let of = |letter: char| {
        let at = (letter as usize).checked_sub(usize::from(b' '));
        at.and_then(|at| WIDTHS.get(at)).copied().unwrap_or(USUAL)
    };
    let thousandths: f32 = text.chars().map(|letter| f32::from(of(letter))).sum();
    thousandths / 1000.0
}

/// A text as a PDF string: parentheses, backslashes and Latin-1 characters are escaped in octal, so that no text can end the string.
fn literal(text: &str) -> String {
    let mut out = "(".to_owned();
    for letter in text.chars() {
        match letter {
            ' '..='~' if !matches!(letter, '(' | ')' | '\\') => out.push(letter),
            '(' | ')' | '\\' | '\u{a0}'..='\u{ff}' => {
                let _ = write!(out, "\\{:03o}", letter as u32);
            }
            _ => out.push('?'),
        }
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::SceneMeasure;

    fn scene(text: &str) -> VectorScene {
        VectorScene {
            title: text.to_owned(),
            measure: SceneMeasure::Screen,
            width: 200.0,
            height: 100.0,
            shapes: vec![
                SceneShape::Dot {
                    x: 5.0,
                    y: 5.0,
                    radius: 2.0,
                    colour: 0xff_0000,
                },
                SceneShape::Text {
                    x: 200.0,
                    y: 90.0,
                    anchor: TextAnchor::End,
                    colour: 0,
                    text: text.to_owned(),
                },
            ],
        }
    }

    #[test]
    fn every_object_is_where_the_table_says() {
        let bytes = pdf(&scene("10.1 ± 0.2 ms"));
        let text = String::from_utf8(bytes).unwrap();
        let table = text.rsplit("startxref\n").next().unwrap();
        let table: usize = table.lines().next().unwrap().parse().unwrap();
        let mut lines = text[table..].lines();
        assert_eq!(lines.next(), Some("xref"));
        let count: usize = lines.next().unwrap()[2..].parse().unwrap();
        for number in 1..count {
            let line = text[table..].lines().nth(number + 2).unwrap();
            let place: usize = line[..10].parse().unwrap();
            assert!(text[place..].starts_with(&format!("{number} 0 obj\n")));
        }
        let stream = text.split("stream\n").nth(1).unwrap();
        let stream = stream.strip_suffix("end").unwrap();
        assert!(text.contains(&format!("/Length {} ", stream.len())));
    }

    #[test]
    fn a_text_ends_where_it_should_and_cannot_leave_its_string() {
        // Ten digits of 556 thousandths at size 11.
        assert!((11.0 * width("0123456789") - 61.16).abs() < 0.01);
        let drawn = String::from_utf8(pdf(&scene(") Tj ET (\\λ±"))).unwrap();
        assert!(
            drawn.contains("(\\051 Tj ET \\050\\134?\\261) Tj"),
            "{drawn}"
        );
    }
}
