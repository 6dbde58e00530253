# A site's power inside the steps and its spectrum: gnuplot -c spectrum.gp STYLE_FOLDER FORMAT TARGET DATA TITLE TIME SMOOTHED LIMIT_W
format = ARG2; target = ARG3; wide = 1000; high = 720
load ARG1."/style.gp"
smoothed = strlen(ARG7) > 0
set multiplot layout 2, 1
set title ARG5
set key above right horizontal
set xlabel "time (s)"
stats ARG4 skip 1 using 2 nooutput
strongest = STATS_max
stats ARG6 skip 1 using 3 nooutput
small = STATS_max < 1; f = small ? 1e3 : 1; unit = small ? "kW" : "MW"  # data are in MW
set ylabel "power at the feed (".unit.")"
stats ARG6 skip 1 using 2 nooutput
set xrange [0:(STATS_max > 20 ? 20 : STATS_max)]
if (smoothed) {
  plot ARG6 index 0 skip 1 using 2:($3*f) with lines linestyle 2 title "as the steps draw it", \
       '' index 1 using 2:($3*f) with lines linestyle 1 title "smoothed"
} else {
  plot ARG6 index 0 skip 1 using 2:($3*f) with lines linestyle 1 title ""
}
frames = frame(0, 0, 0).";"
unset title
set logscale xy; log_x = 1; log_y = 1
set xrange [0.05:20]
limit = (strlen(ARG8) > 0 ? ARG8 : "1") * f / 1e6
# Three decades below the strongest line, and the limit.
top = strongest * f / 1e6
if (strlen(ARG8) > 0 && (limit > top || top <= 0)) { top = limit }
low = top > 0 ? 10**(floor(log10(top)) - 3) : 1e-3
if (strlen(ARG8) > 0 && limit < low) { low = 10**floor(log10(limit)) }
set yrange [low:(top > 0 ? 10**ceil(log10(top) + 0.1) : 1)]
set format "%g"
set xlabel "frequency (Hz)"
set ylabel "amplitude (".unit.")"
if (smoothed) {
  plot ARG4 skip 1 using 1:($2*f/1e6) with lines linestyle 2 title "as the steps draw it", \
       '' skip 1 using 1:($3*f/1e6) with lines linestyle 1 title "smoothed", \
       (strlen(ARG8) > 0 ? limit : 1/0) with lines linecolor rgb "#000000" dashtype 2 title (strlen(ARG8) > 0 ? "limit" : "")
} else {
  plot ARG4 skip 1 using 1:($2*f/1e6) with lines linestyle 1 title "", \
       (strlen(ARG8) > 0 ? limit : 1/0) with lines linecolor rgb "#000000" dashtype 2 title (strlen(ARG8) > 0 ? "limit" : "")
}
unset multiplot
