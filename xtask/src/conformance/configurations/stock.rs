//! What distributions of nginx ship beside it and configurations include: types, the parameters of the gateways.

pub(super) fn include(name: &str) -> Option<String> {
    let parameters = |directive: &str, rows: &[(&str, &str)]| {
        rows.iter().fold(String::new(), |all, (name, value)| all + &format!("{directive} {name} {value};\n"))
    };
    Some(match name {
        "mime.types" => {
            let rows =
                TYPES.iter().fold(String::new(), |all, (kind, names)| all + &format!("{kind} {names};\n"));
            format!("types {{\n{rows}}}\n")
        }
        "fastcgi_params" => parameters("fastcgi_param", &SCRIPT[1..]) + &parameters("fastcgi_param", GATEWAY),
        "fastcgi.conf" => parameters("fastcgi_param", SCRIPT) + &parameters("fastcgi_param", GATEWAY),
        "fastcgi-php.conf" => {
            let own = "fastcgi_split_path_info ^(.+?\\.php)(/.*)$;\nfastcgi_index index.php;\n";
            own.to_owned() + &parameters("fastcgi_param", SCRIPT) + &parameters("fastcgi_param", GATEWAY)
        }
        "uwsgi_params" => parameters("uwsgi_param", GATEWAY),
        "scgi_params" => parameters("scgi_param", GATEWAY),
        "proxy_params" => parameters("proxy_set_header", FORWARDED),
        _ => return None,
    })
}

const TYPES: &[(&str, &str)] = &[
    ("text/html", "html htm shtml"),
    ("text/css", "css"),
    ("text/xml", "xml"),
    ("text/plain", "txt"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpeg jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg svgz"),
    ("image/webp", "webp"),
    ("image/x-icon", "ico"),
    ("application/javascript", "js"),
    ("application/json", "json"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("font/woff", "woff"),
    ("font/woff2", "woff2"),
    ("video/mp4", "mp4"),
    ("audio/mpeg", "mp3"),
];

/// RFC 3875 §4.1 by nginx's variables, with what PHP needs.
const GATEWAY: &[(&str, &str)] = &[
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https if_not_empty"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
];

const SCRIPT: &[(&str, &str)] =
    &[("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"), ("SCRIPT_NAME", "$fastcgi_script_name")];

const FORWARDED: &[(&str, &str)] = &[
    ("Host", "$http_host"),
    ("X-Real-IP", "$remote_addr"),
    ("X-Forwarded-For", "$proxy_add_x_forwarded_for"),
    ("X-Forwarded-Proto", "$scheme"),
];

/// What Docker's image of nginx has at the top, and inside `http`, around the files of `conf.d`.
pub(super) const AROUND: (&str, &str) = (
    "worker_processes auto;\nevents { worker_connections 1024; }\n",
    "include mime.types;\nlog_format main '$remote_addr - $remote_user [$time_local] \"$request\" $status';\ndefault_type application/octet-stream;\nsendfile on;\nkeepalive_timeout 65;\n",
);
