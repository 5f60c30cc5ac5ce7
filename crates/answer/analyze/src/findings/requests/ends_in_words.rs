//! The two ends of a request in words: programs, with their hosts if these differ, and the server's port.

use crate::findings::requests::request::TracedRequest;

/// The program that serves, with its port: `python3 (port 8000)`, or `python3 on app (port 8000)` if the hosts differ; its address if the
/// program is not known.
pub(crate) fn server_with_port(request: &TracedRequest) -> String {
    let Some(program) = program_in_words(request, &request.programs.1, &request.server) else {
        return address(request);
    };
    match request.port {
        // The program's name may contain the port already.
        Some(port) if !request.programs.1.ends_with(')') => format!("{program} (port {port})"),
        _ => program,
    }
}

/// The program that asks: `nginx`, or `nginx on web` if the hosts differ; its host if the program is not known.
pub(crate) fn client_in_words(request: &TracedRequest) -> String {
    program_in_words(request, &request.programs.0, &request.client)
        .unwrap_or_else(|| request.client.clone())
}

/// The address that a request is sent to: `web:80`.
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
