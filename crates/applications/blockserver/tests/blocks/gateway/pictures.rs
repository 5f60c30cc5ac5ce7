//! Pictures as tiles, and the pages that list sets and show them.

use crate::common::{Site, set};
use crate::http::{Http, load_picture, picture, pixels, start};

#[test]
fn tiles_are_pictures() {
    let site = Site::new(2);
    let about = picture("map", 1000, 300, 64);
    load_picture(&site, &about);
    let pyramid = about.picture.clone().unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for number in 0..pyramid.tiles() {
        let tile = pyramid.tile(number).unwrap();
        let answer = http.get(&format!(
            "/map/tile/{}/{}/{}.png",
            tile.level, tile.row, tile.column
        ));
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("image/png"))
        );
        let mut reader = png::Decoder::new(std::io::Cursor::new(&answer.body))
            .read_info()
            .unwrap();
        let mut back = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut back).unwrap();
        assert!(back == pixels(&pyramid, number), "{tile:?}");
        // Map viewers count zoom from the whole picture, and columns before rows.
        let zoom = pyramid.levels() - 1 - tile.level;
        let same = http.get(&format!("/map/xyz/{zoom}/{}/{}.png", tile.column, tile.row));
        assert!(same.body == answer.body);
    }
    let answer = http.get("/map/tile/0/1/2.png");
    assert!(
        answer
            .header("server-timing")
            .unwrap()
            .contains(", png;dur=")
    );
    let tag = answer.header("etag").unwrap();
    assert_eq!(
        http.ask(
            "GET",
            "/map/tile/0/1/2.png",
            &format!("If-None-Match: {tag}\r\n")
        )
        .status,
        304
    );
    let length = answer.body.len().to_string();
    let head = http.ask("HEAD", "/map/tile/0/1/2.png", "");
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some(length.as_str()))
    );
    for path in [
        "/map/tile/0/5/0.png",
        "/map/tile/0/0/16.png",
        "/map/tile/9/0/0.png",
        "/map/xyz/9/0/0.png",
    ] {
        assert_eq!(http.get(path).status, 404, "{path}");
    }
}

#[test]
fn no_level_of_a_picture_does_harm() {
    let site = Site::new(1);
    let about = picture("map", 1000, 300, 64);
    load_picture(&site, &about);
    let levels = about.picture.clone().unwrap().levels();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for level in 0..=255_u8 {
        let expected = if level < levels { 200 } else { 404 };
        assert_eq!(
            http.get(&format!("/map/tile/{level}/0/0.png")).status,
            expected,
            "level {level}"
        );
        assert_eq!(
            http.get(&format!("/map/xyz/{level}/0/0.png")).status,
            expected,
            "zoom {level}"
        );
    }
    let last = u32::MAX;
    assert_eq!(
        http.get(&format!("/map/tile/0/{last}/{last}.png")).status,
        404
    );
}

#[test]
fn sets_are_listed_for_programs_and_people() {
    let site = Site::new(1);
    site.load(&set("plain", 10, 1)).unwrap();
    load_picture(&site, &picture("map", 200, 100, 64));
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let json: serde_json::Value = serde_json::from_slice(&http.get("/").body).unwrap();
    assert_eq!(json["sets"][0]["name"], "plain");
    assert_eq!(json["sets"][0]["blocks"], 10);
    assert_eq!(json["sets"][1]["picture"]["width"], 200);
    assert_eq!(json["servers"][0]["up"], true);
    let page = http.ask("GET", "/", "Accept: text/html,*/*\r\n");
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(
        page.text().contains("<a href=\"/map/view\">200"),
        "{}",
        page.text()
    );
    let view = http.get("/map/view");
    let policy = view.header("content-security-policy").unwrap();
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    assert!(
        view.text().contains(&format!("<script nonce=\"{nonce}\">")) && !view.text().contains("{{")
    );
    assert!(!view.text().contains("http://") && !view.text().contains("https://"));
    assert_ne!(
        http.get("/map/view").body,
        view.body,
        "the nonce is drawn anew"
    );
}
