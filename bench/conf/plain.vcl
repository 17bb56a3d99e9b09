# Varnish as it comes: the page is stored as the API sends it.
vcl 4.1;
backend default { .host = "@ORIGIN_HOST@"; .port = "@ORIGIN_PORT@"; }
