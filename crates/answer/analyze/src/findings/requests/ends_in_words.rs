//! Both ends of a request in words: programs, with their hosts where these are two, and the server's port.

use crate::findings::requests::request::TracedRequest;

/// The program that serves, with its port: `python3 (port 8000)`, of another host `python3 on app (port 8000)`; where it is not known,
/// its address.
pub(crate) fn server_with_port(request: &TracedRequest) -> String {
    let Some(program) = program_in_words(request, &request.programs.1, &request.server) else {
        return address(request);
    };
    match request.port {
        // It may be a part of the program's name already.
        Some(port) if !request.programs.1.ends_with(')') => format!("{program} (port {port})"),
        _ => program,
    }
}

/// The program that asks: `nginx`, of another host `nginx on web`; where it is not known, its host.
pub(crate) fn client_in_words(request: &TracedRequest) -> String {
    program_in_words(request, &request.programs.0, &request.client)
        .unwrap_or_else(|| request.client.clone())
}

/// Where a request is sent to: `web:80`.
pub(crate) fn address(request: &TracedRequest) -> String {
    match request.port {
        Some(port) => format!("{}:{port}", request.server),
        None => request.server.clone(),
    }
}

/// Both ends: `nginx > python3 (port 8000)`.
pub(crate) fn both_ends(request: &TracedRequest) -> String {
    format!(
        "{} > {}",
        client_in_words(request),
        server_with_port(request)
    )
}

fn program_in_words(request: &TracedRequest, program: &str, host: &str) -> Option<String> {
    if program.is_empty() {
        return None;
    }
    Some(match request.client == request.server {
        true => program.to_owned(),
        false => format!("{program} on {host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_said_where_they_are_two() {
        let mut request = TracedRequest {
            client: "here".into(),
            server: "here".into(),
            programs: ("nginx".into(), "python3".into()),
            port: Some(8000),
            ..TracedRequest::default()
        };
        assert_eq!(both_ends(&request), "nginx > python3 (port 8000)");
        request.server = "app".into();
        assert_eq!(
            both_ends(&request),
            "nginx on here > python3 on app (port 8000)"
        );
        request.programs = (String::new(), String::new());
        assert_eq!(both_ends(&request), "here > app:8000");
        request.port = None;
        assert_eq!(both_ends(&request), "here > app");
    }
}
