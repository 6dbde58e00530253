# A study's output over names, a bar a series: gnuplot -c bars.gp STYLE_FOLDER FORMAT TARGET DATA SETTINGS (see sweep.gp)
format = ARG2; target = ARG3; wide = 1000; high = 520
eval ARG5
load ARG1."/style.gp"
categories = 1
set title title_text
set xlabel x_text
set ylabel y_text
set key tmargin right horizontal
if (n < 2) { unset key }
set style data histograms
set style histogram clustered gap 1
set boxwidth 0.85
set yrange [0:*]
set offsets 0, 0, graph 0.1, 0
set xtics scale 0
if (rotated) { set xtics rotate by 40 right }
plot for [i=1:int(n)] ARG4 using (column(i + 1) * scale):xtic(1) linestyle 30 + i fillstyle solid 1 border linecolor rgb "#000000" title columnheader(i + 1), \
     for [i=1:int(n)] ARG4 using ($0 + (i - (n + 1) / 2) / (n + 1)):(column(i + 1) * scale):(sprintf("%.4g", column(i + 1) * scale)) every ::1 with labels offset 0, 0.6 notitle
