<?php
// A blog with twenty posts, each with an address of its own.
$_SERVER += ['HTTP_HOST' => 'blog.example', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
define('WP_INSTALLING', true);
function wp_mail() { return true; }
require $argv[1] . '/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Blog', 'admin', 'admin@blog.example', true, '', 'a password that nobody uses');
switch_theme('twentytwentythree');
update_option('permalink_structure', '/%postname%/');
for ($number = 1; $number <= 20; $number++) {
    wp_insert_post([
        'post_title' => "Post $number",
        'post_name' => "post-$number",
        'post_content' => str_repeat("<p>A paragraph of post $number.</p>\n", 40),
        'post_status' => 'publish',
        'post_author' => 1,
        'post_date' => sprintf('2026-01-%02d 10:00:00', $number),
    ]);
}
flush_rewrite_rules();
