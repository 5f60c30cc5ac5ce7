//! The page as text: what is in it, and what cannot be.

use super::markup_safe_data::tests::unpack;
use super::*;
use crate::testing::traced;

#[test]
fn a_page_is_one_file_with_its_parts_in_place() {
    let traced = traced::hostile();
    let text = page(&traced.content()).unwrap();
    for place in [
        "<!--policy-->",
        "<!--style-->",
        "<!--data-->",
        "<!--script-->",
    ] {
        assert!(!text.contains(place), "{place}");
    }
    assert!(text.len() < 200_000, "{} bytes of code", text.len());
    for outside in ["src=", "http://", "https://", "@import", "url("] {
        let allowed = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!allowed.contains(outside), "{outside}");
    }
}

#[test]
fn nothing_that_a_run_holds_is_in_the_page_but_in_base64() {
    let traced = traced::hostile();
    let text = page(&traced.content()).unwrap();
    assert!(!text.contains("onerror") && !text.contains("alert("));
    assert_eq!(text.matches("<script").count(), 2);
    assert_eq!(text.matches("</script").count(), 2);
    let data = text
        .split_once("id=\"data\">")
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    let (head, _) = unpack(data);
    assert_eq!(head["title"], traced::HOSTILE);
    assert_eq!(head["specification"], traced::HOSTILE);
}

#[test]
fn the_policy_names_the_script_and_the_style_that_are_there() {
    let text = page(&traced::hostile().content()).unwrap();
    let between = |from: &str, to: &str| {
        text.split_once(from)
            .unwrap()
            .1
            .split_once(to)
            .unwrap()
            .0
            .to_owned()
    };
    let policy = between("Content-Security-Policy\" content=\"", "\">");
    assert!(
        policy.contains(&source(&between("<style>", "</style>"))),
        "{policy}"
    );
    assert!(
        policy.contains(&source(&between("<script type=\"module\">", "</script>"))),
        "{policy}"
    );
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
}

/// For people who change the page: writes pages into a directory, to be opened in any browser.
#[test]
#[ignore = "writes pages for people: STACKLINE_PAGES=DIR cargo test -p stackline-report sample_pages -- --ignored"]
fn sample_pages() {
    let directory = std::path::PathBuf::from(std::env::var_os("STACKLINE_PAGES").unwrap());
    for (name, traced) in [
        ("few", traced::few()),
        ("large", traced::large(100_000)),
        ("hostile", traced::hostile()),
    ] {
        std::fs::write(
            directory.join(format!("{name}.html")),
            page(&traced.content()).unwrap(),
        )
        .unwrap();
    }
}
