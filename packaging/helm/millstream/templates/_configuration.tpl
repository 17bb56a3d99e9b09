{{/* nginx.conf. What is written in it is checked by the program itself at the start: `millstream -t`. */}}
{{- define "millstream.configuration" -}}
worker_processes {{ .Values.workers }};
worker_shutdown_timeout {{ .Values.shutdown.timeoutSeconds }}s;
pid /run/millstream/nginx.pid;
control_socket /run/millstream/control.sock;
error_log stderr {{ .Values.logs.errors }};
{{- with .Values.main }}
{{ . | trim }}
{{- end }}

events {
    worker_connections {{ .Values.workerConnections }};
}

http {
    dashboard 0.0.0.0:{{ .Values.dashboard.port }};
    {{- with .Values.dashboard.allow }}
    api_allow {{ join " " . }};
    {{- end }}

    access_log {{ ternary "/dev/stdout combined buffer=64k flush=1s" "off" .Values.logs.access }};

    keepalive_timeout 65;
    max_ranges 16;

    gzip on;
    gzip_vary on;
    gzip_proxied any;
    gzip_comp_level 2;
    gzip_min_length 256;
    gzip_types text/plain text/css text/xml text/javascript application/json application/javascript application/xml application/rss+xml image/svg+xml;
    {{- if .Values.cluster.url }}

    # Purges and invalidations of one replica take effect on all.
    cluster main {
        server {{ include "millstream.engine" . }};
        secret /run/secrets/millstream-cluster/{{ .Values.cluster.secretKey }};
        {{- with (urlParse .Values.cluster.url).userinfo }}
        user {{ . }};
        {{- end }}
        {{- with .Values.cluster.passwordKey }}
        password /run/secrets/millstream-cluster/{{ . }};
        {{- end }}
        {{- if hasPrefix "rediss:" .Values.cluster.url }}
        tls on;
        {{- end }}
    }
    {{- end }}
    {{- with .Values.http }}

    {{- . | trim | nindent 4 }}
    {{- end }}

    include conf.d/*.conf;
    # Created from templates at the start.
    include /run/millstream/conf.d/*.conf;
}
{{- end -}}

{{/* The site in short. */}}
{{- define "millstream.site" -}}
{{- if .Values.api.servers -}}
proxy_cache_path /var/cache/millstream/api levels=1:2 keys_zone=api:32m{{ if .Values.cluster.url }} cluster=main{{ end }} memory={{ .Values.cache.memory }} max_size={{ .Values.cache.maxSize }} inactive={{ .Values.cache.inactive }};

upstream api {
    {{- range .Values.api.servers }}
    server {{ . }} fail_timeout=1s;
    {{- end }}
    keepalive auto;
}

server {
    listen {{ .Values.port }};
    server_name {{ .Values.api.serverName }};

    location / {
        proxy_pass http://api;
        proxy_upgrade on;
        proxy_set_header Host $host;
        {{- with .Values.api.trustedProxies }}
        trusted_proxy {{ join " " . }};
        {{- end }}
        proxy_set_header X-Real-IP $forwarded_addr;
        proxy_set_header X-Forwarded-For $forwarded_for;
        proxy_set_header X-Forwarded-Proto $forwarded_proto;
        proxy_set_header X-Forwarded-Host $forwarded_host;

        proxy_cache api;
        proxy_cache_key "$forwarded_proto$forwarded_host$host$request_uri";
        proxy_cache_lock on;
        # Requests with a credential, and clients at different addresses, share only responses marked as public; other sites, languages or unknown fields have responses of their own.
        proxy_cache_credentials public;
        proxy_cache_vary origin unlisted address;
        {{- with .Values.api.microcache }}
        proxy_cache_valid 200 301 302 {{ . }};
        {{- end }}
        # Use a stale response during a refresh, and if the API fails.
        proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504;
        proxy_cache_background_update on;
        proxy_cache_stale_while_updating 10s;
        proxy_cache_stale_if_error 10m;
        add_header X-Cache-Status $upstream_cache_status always;
    }
}
{{- else -}}
server {
    listen {{ .Values.port }};
    return 404 "there is no site: helm upgrade with api.servers or sites\n";
}
{{- end -}}
{{- end -}}
