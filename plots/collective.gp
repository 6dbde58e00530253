# Bus bandwidth of a collective over its size, with the bound: gnuplot -c collective.gp STYLE_FOLDER FORMAT TARGET DATA TITLE
format = ARG2; target = ARG3; wide = 900; high = 480
load ARG1."/style.gp"
set title ARG5
set xlabel "size of a rank's buffer"
set ylabel "bus bandwidth (GB/s)"
set y2label "time"
set logscale x 2
set logscale y2 10
set yrange [0:*]
set border 11
set y2tics nomirror out scale 0.6 ("1 us" 1, "10 us" 10, "100 us" 1e2, "1 ms" 1e3, "10 ms" 1e4, "100 ms" 1e5, "1 s" 1e6, "10 s" 1e7)
set xtics ("1 KiB" 2**10, "16 KiB" 2**14, "256 KiB" 2**18, "4 MiB" 2**22, "64 MiB" 2**26, "1 GiB" 2.0**30, "16 GiB" 2.0**34)
set key tmargin right horizontal
plot ARG4 skip 1 using 1:5 with lines linestyle 5 linewidth 3 title "bound", \
     ARG4 skip 1 using 1:4 with linespoints linestyle 1 pointtype 7 pointsize 0.7 title "bus bandwidth", \
     ARG4 skip 1 using 1:2 axes x1y2 with lines linestyle 1 dashtype 3 title "time (right)"
