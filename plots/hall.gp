# Jobs (Gantt) above the hall's power: gnuplot -c hall.gp STYLE_FOLDER FORMAT TARGET DATA TITLE POWER UNIT JOBS LIMIT
format = ARG2; target = ARG3; wide = 1100
jobs = ARG8 + 0
gantt_high = jobs < 12 ? 260 : jobs <= 60 ? 80 + 15 * jobs : 900
high = gantt_high + 380
load ARG1."/style.gp"
part = (gantt_high + 0.0) / high
unit = ARG7 eq "days" ? 86400.0 : 3600.0
stats ARG6 skip 1 using ($1/unit) nooutput
end = STATS_max
# Each step of a filled curve is a polygon: no more of them than twice the pixels. The feed itself is drawn whole.
thin = ceil(STATS_records / 2200.0)
line = thin > 1 ? 0.25 : 1
set xrange [0:end]
set lmargin 22; set rmargin 3
set multiplot
set origin 0, 1 - part; set size 1, part
set bmargin 1; set tmargin 4.5
set title ARG5
set yrange [jobs - 0.3:-0.7]
set format x ""
unset grid
if (jobs <= 60) {
  set style fill solid 1 border rgb "#ffffff"
} else {
  set style fill solid 1 noborder
}
set key tmargin center horizontal maxrows 1 samplen 1.5
if (jobs <= 60) {
  set ytics scale 0
}
if (jobs <= 60) {
  plot ARG4 skip 1 using ($4==0 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.08):($1+0.08):ytic(6) with boxxyerror linecolor rgb "#bfc7cf" title "waits", \
     '' skip 1 using ($4==1 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.4):($1+0.4) with boxxyerror linecolor rgb "#f2d9a0" title "starts up", \
     '' skip 1 using ($4==2 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.4):($1+0.4) with boxxyerror linecolor rgb "#1f3a5f" title "runs", \
     '' skip 1 using ($4==3 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.4):($1+0.4) with boxxyerror linecolor rgb "#e08214" title "runs under a cap"
} else {
  set ylabel "jobs by arrival"
  plot ARG4 skip 1 using ($4==0 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.3):($1+0.3) with boxxyerror linecolor rgb "#cfd6dd" title "waits", \
     '' skip 1 using ($4==1 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.5):($1+0.5) with boxxyerror linecolor rgb "#f2d9a0" title "starts up", \
     '' skip 1 using ($4==2 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.5):($1+0.5) with boxxyerror linecolor rgb "#1f3a5f" title "runs", \
     '' skip 1 using ($4==3 ? $2/unit : 1/0):1:($2/unit):($3/unit):($1-0.5):($1+0.5) with boxxyerror linecolor rgb "#e08214" title "runs under a cap"
}
frames = frame(jobs <= 60 ? 3 : 4, 0, 0).";"
set origin 0, 0; set size 1, 1 - part
set tmargin 3; set bmargin 3.5
unset title
set format x "%g"
set xlabel "time (".ARG7.")"
set ylabel "power at the feed (MW)"
set format y "%g"
set yrange [0:*]
unset ytics
set ytics nomirror out scale 0.6
set grid y
set key tmargin center horizontal maxrows 1 samplen 1.5
set style fill solid 1 noborder
# Stacked: the whole behind, its parts in front.
plot ARG6 skip 1 every thin using ($1/unit):(($4+$5+$6+$7+$8)/1e6) with fillsteps linecolor rgb "#5a72b5" title "cooling, building", \
     '' skip 1 every thin using ($1/unit):(($4+$5+$6+$7)/1e6) with fillsteps linecolor rgb "#f2d9a0" title "losses", \
     '' skip 1 every thin using ($1/unit):(($4+$5+$7)/1e6) with fillsteps linecolor rgb "#3f9c8c" title "network", \
     '' skip 1 every thin using ($1/unit):(($4+$5)/1e6) with fillsteps linecolor rgb "#e8b04a" title "idle nodes", \
     '' skip 1 every thin using ($1/unit):($4/1e6) with fillsteps linecolor rgb "#1f3a5f" title "jobs", \
     '' skip 1 using ($1/unit):($2/1e6) with steps linestyle 1 linewidth line title "feed", \
     '' skip 1 using ($1/unit):(strlen(ARG9) > 0 ? $3/1e6 : 1/0) with steps linecolor rgb "#000000" dashtype 2 linewidth 2 * line title (strlen(ARG9) > 0 ? "budget" : "")
unset multiplot
