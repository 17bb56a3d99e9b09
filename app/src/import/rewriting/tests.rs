//! Files in, files out: what is written anew for the folder of packages and for any other.

use super::*;
use crate::import::plan::Entry;
use std::fs;

/// Compares a file of the target, and the differences; `@` in nginx's files stands for their directory.
fn check(target: &str, files: &[(&str, &str)], expected: &[(&str, &str)], differences: &[&str]) {
    let place = tempfile::tempdir().expect("a directory");
    let folder = place.path().canonicalize().expect("it is there");
    let named = |text: &str| text.replace('@', &folder.display().to_string());
    for (name, text) in files {
        fs::create_dir_all(folder.join(name).parent().expect("a folder")).expect("made");
        fs::write(folder.join(name), named(text)).expect("written");
    }
    let origin = Origin::find(&folder, Some(Path::new("/usr/share/nginx"))).expect("it is there");
    let loaded = origin.load();
    assert!(loaded.configuration.is_some(), "{:?}", loaded.diagnostics);
    let (plan, found) = plan(&origin, &loaded, &OwnPlaces::of(Path::new(target))).expect("it can be copied");
    for (name, text) in expected {
        let Some(Entry::File { text: own, .. }) = plan.entries.get(Path::new(name)) else {
            panic!("no {name}")
        };
        assert_eq!(String::from_utf8_lossy(own), named(text), "{name}");
    }
    let found: Vec<&str> = found.iter().map(|difference| difference.text.as_str()).collect();
    for told in differences {
        assert!(found.iter().any(|text| text.contains(told)), "{told} is not in {found:#?}");
    }
    assert_eq!(found.len(), differences.len(), "{found:#?}");
}

#[test]
fn what_the_unit_says_and_what_nginx_writes_changes_in_the_folder_of_packages() {
    let main = "user www-data adm;\ndaemon off; pid /run/nginx.pid;\nevents {}\nhttp {\n    error_log /dev/stderr warn;\n    \
                access_log '/var/log/nginx/my access.log';\n    client_body_temp_path /var/lib/nginx/body;\n    include \"@/conf.d/*.conf\";\n}\n";
    let expected = "# user www-data adm;\n pid /run/millstream/nginx.pid;\nevents {}\nhttp { dashboard 127.0.0.1:8081 optional; root /usr/share/nginx/html;\n    \
                    error_log /dev/stderr warn;\n    access_log \"/var/log/millstream/my access.log\";\n    client_body_temp_path /var/cache/millstream/body;\n    \
                    include conf.d/*.conf;\n}\n\n# Added by millstream import, because nginx has other defaults.\nerror_log /var/log/millstream/error.log;\n";
    let site = "server { listen 127.0.0.1:80; }";
    check(
        "/etc/millstream",
        &[("nginx.conf", main), ("conf.d/site.conf", site)],
        &[("nginx.conf", expected), ("conf.d/site.conf", site)],
        &[
            "user www-data is omitted",
            "daemon is omitted",
            "the pid file /run/nginx.pid is replaced by /run/millstream/nginx.pid",
            "the log /var/log/nginx/my access.log is ",
            "the directory for temporary files /var/lib/nginx/body is ",
            "error_log /var/log/millstream/error.log; is added",
            "dashboard 127.0.0.1:8081 optional; is added",
        ],
    );
}

#[test]
fn names_hang_where_they_hung_in_any_other_folder() {
    let main = "pid logs/nginx.pid; error_log logs/error.log;\nevents {}\nhttp { access_log off; root $dir/x; include ./sites/*; include nowhere.d/*; }";
    let site = "server { listen 127.0.0.1:80; root html; location /a { alias html/a/; } location /p { auth_basic x; auth_basic_user_file @/users; }\n\
                location /q { auth_basic x; auth_basic_user_file none; } set $dir /srv; include @/sites/../more.inc; session_log k; }";
    let expected = "server { listen 127.0.0.1:80; root /usr/share/nginx/html; location /a { alias /usr/share/nginx/html/a/; } location /p { \
                    auth_basic x; auth_basic_user_file users; }\nlocation /q { auth_basic x; auth_basic_user_file @/none; } set $dir /srv; \
                    include more.inc;  }";
    check(
        "/srv/new",
        &[("nginx.conf", main), ("sites/one", site), ("users", "joe:x"), ("more.inc", "# more")],
        &[
            ("nginx.conf", &main.replace("logs/nginx.pid", "nginx.pid").replace("./sites/*", "sites/*")),
            ("sites/one", expected),
            ("users", "joe:x"),
            ("more.inc", "# more"),
        ],
        &[
            "if $dir/x is a relative path, it is no longer relative to /usr/share/nginx",
            "the pid file /usr/share/nginx/logs/nginx.pid is replaced by nginx.pid",
            "the log /usr/share/nginx/logs/error.log is replaced by logs/error.log",
        ],
    );
}

#[test]
fn files_that_nginxs_packages_bring_for_sites_come_along_though_nothing_includes_them() {
    let main = "events {}\nhttp { include snippets/used.conf; }\n";
    let place = tempfile::tempdir().expect("a directory");
    let folder = place.path().canonicalize().expect("it is there");
    fs::create_dir_all(folder.join("snippets/deeper")).expect("made");
    let files = [
        ("nginx.conf", main),
        ("snippets/used.conf", ""),
        ("snippets/ssl.conf", "ssl_protocols TLSv1.3;"),
        ("fastcgi_params", "fastcgi_param A b;"),
        ("proxy_params", "proxy_set_header A b;"),
        ("private.key", "secret"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("written");
    }
    let origin = Origin::find(&folder, Some(Path::new("/usr/share/nginx"))).expect("it is there");
    let (plan, _) =
        plan(&origin, &origin.load(), &OwnPlaces::of(Path::new("/new"))).expect("it can be copied");
    let copied: Vec<String> = plan.entries.keys().map(|path| path.display().to_string()).collect();
    assert_eq!(
        copied,
        ["fastcgi_params", "nginx.conf", "proxy_params", "snippets/ssl.conf", "snippets/used.conf"]
    );
}
